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

/** The machines whose readings are requested first: the status of the others says already that they need attention. */
export const readFirst = <T extends Pick<Machine, "agent">>(
  machines: readonly T[],
  most: number,
): T[] =>
  [...machines]
    .sort((a, b) => Number(statusConcern(a) !== null) - Number(statusConcern(b) !== null))
    .slice(0, most);

/** Why a machine needs attention by its status, if it does. */
function statusConcern({ agent }: Pick<Machine, "agent">): string | null {
  if (agent.status === "disconnected") return "disconnected";
  return agent.status === "timeout" ? "not attached" : null;
}

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

/** A reading as a reason: "disk 97 %"; the path says in its value what it is. */
const concernOf = ({ name, value }: AgentLights["host"]["values"][number]): string =>
  name === "pending reboot" ? name : name === "way" ? value : `${name} ${value}`;

/** Why a machine needs attention; empty for none. Something unknown is no reason. */
export function concerns({ agent, lights }: Machine): string[] {
  const status = statusConcern({ agent });
  const found = status === null ? [] : [status];
  for (const part of ["host", "agent", "path"] as const)
    for (const value of lights?.[part].values ?? [])
      if (value.name !== "heartbeat" && (value.status === "bad" || value.status === "warning"))
        found.push(concernOf(value));
  return found;
}

/** The names of machines: those of one workspace, or of namesakes of two owners, are told apart. */
export function machineNames(machines: readonly Pick<Machine, "workspace" | "agent">[]): string[] {
  const forms = machines.map(({ workspace, agent }) => {
    const owned = `${workspace.owner_name}/${workspace.name}`;
    return [workspace.name, owned, `${owned}.${agent.name}`] as const;
  });
  return forms.map(
    (own) =>
      own.find((name, form) => !forms.some((other) => other !== own && other[form] === name)) ??
      own[2],
  );
}

/** Commands by machine, and the machines whose command is missing. */
export interface Loaded {
  commands: readonly (readonly [name: string, command: string])[];
  failed: readonly { name: string; error: unknown }[];
}

/** Load the command of each machine, one after the other, also after a failure. */
export async function loadCommands(
  machines: readonly Machine[],
  load: (machine: Machine) => Promise<{ command: string }>,
): Promise<Loaded> {
  const commands: [string, string][] = [];
  const failed: { name: string; error: unknown }[] = [];
  const names = machineNames(machines);
  for (const [index, machine] of machines.entries()) {
    const name = names[index] ?? machine.workspace.name;
    try {
      commands.push([name, (await load(machine)).command]);
    } catch (error) {
      failed.push({ name, error });
    }
  }
  return { commands, failed };
}

/** The attach commands of several machines, as lines of a shell script. */
export const attachScript = (commands: readonly (readonly [name: string, command: string])[]) =>
  commands.map(([name, command]) => `# ${name}\n${command}\n`).join("\n");
