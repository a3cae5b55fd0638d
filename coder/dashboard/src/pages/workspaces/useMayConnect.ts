// Whether the user may connect to a workspace: terminal, SSH, ports, applications. Viewing it
// requires less.
import { usePermissions, useWorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { useMe } from "../../features/session/useMe";

/**
 * False until known. The server is queried only if neither ownership nor a deployment-wide
 * permission decides.
 */
export function useMayConnect(workspace: Workspace): boolean {
  const decided = useMe().id === workspace.owner_id;
  const { connectToAnyWorkspace, known } = usePermissions();
  const needsCheck = !decided && known && !connectToAnyWorkspace;
  const may = useWorkspaceRights(workspace, { enabled: needsCheck });
  return decided || connectToAnyWorkspace || may.ssh === true;
}
