// The name of a workspace and agent in commands.
import type { Workspace, WorkspaceAgent } from "../../api/types";

type Named = Pick<Workspace, "name" | "owner_id" | "owner_name" | "latest_build">;

/**
 * Return `[owner/]workspace[.agent]` as the command line resolves it for `viewer`, the id of the user
 * who runs the command. The owner is left out in the viewer's own workspaces only: without it, a
 * command would enter the viewer's workspace of the same name. The agent is left out where the
 * command line chooses the same one (`choose_agent` of coder/client/target.py).
 */
export function target(
  workspace: Named,
  agent: Pick<WorkspaceAgent, "id" | "name"> | null,
  viewer: string,
): string {
  const agents = workspace.latest_build.resources.flatMap((resource) => resource.agents ?? []);
  const own = agents.filter((item) => item.parent_id === null);
  const chosen = own.length === 1 ? own[0] : agents.length === 1 ? agents[0] : undefined;
  const owner = viewer === workspace.owner_id ? "" : `${workspace.owner_name}/`;
  return (
    owner + workspace.name + (agent === null || chosen?.id === agent.id ? "" : `.${agent.name}`)
  );
}
