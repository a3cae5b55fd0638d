// Paths of a workspace's pages.
import { seg } from "../../api/client";
import type { Workspace, WorkspaceAgent } from "../../api/types";

export const workspacePath = (workspace: Pick<Workspace, "owner_name" | "name">) =>
  `/@${seg(workspace.owner_name)}/${seg(workspace.name)}`;

export const terminalPath = (workspace: Workspace, agent: Pick<WorkspaceAgent, "name">) =>
  `${workspacePath(workspace)}.${seg(agent.name)}/terminal`;

/** The page that says why the connection to an agent is slow. */
export const connectionPath = (workspace: Workspace, agent: Pick<WorkspaceAgent, "name">) =>
  `${workspacePath(workspace)}/connection?agent=${seg(agent.name)}`;

/** The page for the values that a build with this version requires. */
export const valuesPath = (workspace: Pick<Workspace, "owner_name" | "name">, version: string) =>
  `${workspacePath(workspace)}/settings/parameters?templateVersionId=${version}`;

/** A new workspace from the same template; its parameters are requested there. */
export const duplicatePath = (workspace: Workspace) =>
  `/templates/${seg(workspace.organization_name)}/${seg(workspace.template_name)}/workspace?` +
  `version=${workspace.latest_build.template_version_id}&` +
  `name=${seg(`${workspace.name}-copy`)}&like=${workspace.latest_build.id}`;
