// Attached machines: what is known of each, and which need attention.
import type { AgentLights, Workspace, WorkspaceAgent } from "../../../api/types";
import { agentsOf } from "../../../features/workspace/status";

export const FLEET = "has_external_agent:true status:running";

export interface Machine {
  workspace: Workspace;
  agent: WorkspaceAgent;
  /** null until known, and for a server or an agent without readings. */
  lights: AgentLights | null;
}

export const machineKey = ({ workspace, agent }: Pick<Machine, "workspace" | "agent">): string =>
  `${workspace.id}/${agent.name}`;

/** The top-level agents of the workspaces: an agent inside of another shares its machine. */
export const machinesOf = (workspaces: readonly Workspace[]): Omit<Machine, "lights">[] =>
  workspaces.flatMap((workspace) =>
    agentsOf(workspace)
      .filter((agent) => agent.parent_id === null)
      .map((agent) => ({ workspace, agent })),
  );

export interface Reading {
  text: string;
  status: "bad" | "good" | "unknown" | "warning";
}

const UNKNOWN: Reading = { text: "-", status: "unknown" };

/** A reading by its name, such as "disk" of the host. Without a reading it is unknown. */
export function readingOf(
  lights: AgentLights | null,
  part: keyof AgentLights,
  name: string,
): Reading {
  const value = lights?.[part].values.find((candidate) => candidate.name === name);
  return value && value.value !== "" ? { text: value.value, status: value.status } : UNKNOWN;
}

export type Way = "direct" | "relayed" | "idle" | "unknown";

/** The way to the machine's peers. */
export function wayOf(lights: AgentLights | null): Way {
  const { text, status } = readingOf(lights, "path", "way");
  if (status === "unknown") return "unknown";
  if (/relayed/.test(text)) return "relayed";
  return /direct/.test(text) ? "direct" : "idle";
}

/** Why a machine needs attention; empty for none. Something unknown is no reason. */
export function concerns({ agent, lights }: Machine): string[] {
  const found: string[] = [];
  if (agent.status === "disconnected") found.push("disconnected");
  if (agent.status === "timeout") found.push("not attached");
  for (const part of ["host", "agent", "path"] as const)
    for (const value of lights?.[part].values ?? [])
      if (value.name !== "heartbeat" && (value.status === "bad" || value.status === "warning"))
        found.push(`${value.name} ${value.value}`);
  return found;
}

/** The attach commands of several machines, as lines of a shell script. */
export const attachScript = (commands: readonly (readonly [name: string, command: string])[]) =>
  commands.map(([name, command]) => `# ${name}\n${command}\n`).join("\n");
