// The effect of an update: the version that the template offers, and its author's message.
import { useQuery } from "@tanstack/react-query";

import { templateVersion } from "../../api/queries/templates";
import type { Workspace } from "../../api/types";
import { isStaged } from "../../features/workspace/offers";

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
      {isStaged(workspace) ? " (a rollout offers it before it becomes the active version)" : ""}
    </p>
  );
}
