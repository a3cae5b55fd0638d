// Whether the person may go into a workspace: terminal, SSH, ports, applications. To see one is less.
import { usePermissions, useWorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { useMe } from "../../features/session/useMe";

/** False until it is known. Asked of the server only where neither the owner's nor a deployment-wide right decides. */
export function useMayEnter(workspace: Workspace): boolean {
  const decided = useMe().id === workspace.owner_id;
  const { enterAnyWorkspace, known } = usePermissions();
  const asks = !decided && known && !enterAnyWorkspace;
  const may = useWorkspaceRights(workspace, { enabled: asks });
  return decided || enterAnyWorkspace || may.ssh === true;
}
