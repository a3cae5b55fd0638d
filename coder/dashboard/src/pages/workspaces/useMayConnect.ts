// Whether the user may connect to a workspace: terminal, SSH, ports, applications. Viewing it
// requires less.
import { usePermissions, useWorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { useMe } from "../../features/session/useMe";

/**
 * False until known. The server is queried only if neither ownership nor a deployment-wide
 * permission decides.
 */
export function useMayEnter(workspace: Workspace): boolean {
  const decided = useMe().id === workspace.owner_id;
  const { enterAnyWorkspace, known } = usePermissions();
  const asks = !decided && known && !enterAnyWorkspace;
  const may = useWorkspaceRights(workspace, { enabled: asks });
  return decided || enterAnyWorkspace || may.ssh === true;
}
