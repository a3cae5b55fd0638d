import { Compass } from "lucide-react";

import { ButtonLink } from "./Button";
import { Empty } from "./Empty";
import { useTitle } from "./title";

/** `subject` names what the address means, such as "The workspace ana/dev". */
export function NotFoundPage({ subject = "The page" }: { subject?: string }) {
  useTitle("Page not found");
  return (
    <Empty
      icon={Compass}
      title="Page not found"
      level={1}
      actions={<ButtonLink to="/workspaces">Back to workspaces</ButtonLink>}
    >
      {subject} may have been removed or renamed, or you may not have access to it.
    </Empty>
  );
}
