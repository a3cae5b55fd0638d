// The address of a workspace's port: a host below the deployment's wildcard.
import type { Workspace, WorkspaceAgentPortShare } from "../../api/types";

export type Protocol = WorkspaceAgentPortShare["protocol"];

/** The host of a port below the wildcard. */
export function portAddress(
  host: string,
  port: number,
  protocol: Protocol,
  workspace: Pick<Workspace, "name" | "owner_name">,
  agent: string,
  scheme = window.location.protocol,
): string {
  const name = `${port}${protocol === "https" ? "s" : ""}--${agent}--${workspace.name}--${workspace.owner_name}`;
  return `${scheme}//${host.replace("*", name)}/`;
}
