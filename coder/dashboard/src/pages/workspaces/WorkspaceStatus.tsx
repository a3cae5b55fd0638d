// A workspace's state: a dot, a label, and the problem if there is one.
import type { Workspace } from "../../api/types";
import { StatusText } from "../../ui/Badge";
import {
  healthProblemOf,
  isActive,
  isUnattached,
  STATUS,
  statusOf,
} from "../../features/workspace/status";

export function WorkspaceStatus({ workspace }: { workspace: Workspace }) {
  const unattached = isUnattached(workspace);
  const [word, tone] = unattached
    ? (["Not attached", "idle"] as const)
    : STATUS[statusOf(workspace)];
  const trouble = unattached ? null : healthProblemOf(workspace);
  return (
    <span data-testid="workspace-status" data-status={workspace.latest_build.status}>
      <StatusText
        tone={workspace.dormant_at ? "idle" : (trouble?.[1] ?? tone)}
        pulse={isActive(workspace)}
      >
        <span className="sr-only">Workspace status: </span>
        {workspace.dormant_at ? "Dormant" : word}
        {trouble ? <span className="font-normal"> · {trouble[0]}</span> : null}
      </StatusText>
    </span>
  );
}
