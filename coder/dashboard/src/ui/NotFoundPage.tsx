import { Compass } from "lucide-react";

import { ButtonLink } from "./Button";
import { Empty } from "./Empty";
import { useTitle } from "./title";

export function NotFoundPage() {
  useTitle("Page not found");
  return (
    <Empty
      icon={Compass}
      title="Page not found"
      level={1}
      actions={<ButtonLink to="/workspaces">Back to workspaces</ButtonLink>}
    >
      The page may have been removed, or you may not have access to it.
    </Empty>
  );
}
