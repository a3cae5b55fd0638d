// The effect of an update: the active version of the template, and its author's message.
import { useQuery } from "@tanstack/react-query";

import { templateVersion } from "../../api/queries/templates";
import type { Workspace } from "../../api/types";

export function NewerVersion({ workspace }: { workspace: Workspace }) {
  const version = useQuery({
    ...templateVersion(workspace.template_active_version_id),
    enabled: workspace.outdated,
  }).data;
  if (!version) return null;
  return (
    <p>
      <strong className="font-medium text-text">{version.name}</strong>
      {version.message ? `: ${version.message}` : ""}
    </p>
  );
}
