// Shown if the user opens a page without the permission for it: one sentence, and no broken form.
import { LockKeyhole } from "lucide-react";

import { ButtonLink } from "./Button";
import { Empty } from "./Empty";

export function PermissionDenied({ subject }: { subject: string }) {
  return (
    <Empty
      level={1}
      icon={LockKeyhole}
      title={`You need permission to view ${subject}`}
      actions={<ButtonLink to="/workspaces">Back to workspaces</ButtonLink>}
    >
      Ask an owner of this deployment for a role with this permission.
    </Empty>
  );
}
