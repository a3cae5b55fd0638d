// Somebody came by an address to a page that is not for them: one sentence, and no broken form.
import { LockKeyhole } from "lucide-react";

import { ButtonLink } from "./Button";
import { Empty } from "./Empty";

export function Refused({ what }: { what: string }) {
  return (
    <Empty
      level={1}
      icon={LockKeyhole}
      title={`You may not see ${what}`}
      actions={<ButtonLink to="/workspaces">Back to workspaces</ButtonLink>}
    >
      An owner of this deployment can give you a role that may.
    </Empty>
  );
}
