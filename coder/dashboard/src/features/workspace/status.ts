// Labels and tones of workspace and agent states.
import type { Workspace, WorkspaceAgent } from "../../api/types";
import type { Tone } from "../../ui/Badge";
import { stateOf } from "../provisioner/job-states";

export type WorkspaceStatus = Workspace["latest_build"]["status"];

export const STATUS: Record<WorkspaceStatus, readonly [word: string, tone: Tone]> = {
  pending: ["Pending", "busy"],
  starting: ["Starting", "busy"],
  running: ["Running", "good"],
  stopping: ["Stopping", "busy"],
  stopped: ["Stopped", "idle"],
  failed: ["Failed", "bad"],
  canceling: ["Canceling", "busy"],
  canceled: ["Canceled", "idle"],
  deleting: ["Deleting", "busy"],
  deleted: ["Deleted", "idle"],
};

/**
 * The workspace's state to show: a canceled build is not a failed one, whatever error its program ended with.
 *
 * The filter `status:failed` finds it all the same. The original's API calls such a build failed (recorded four times),
 * and scripts search by that word. A list filtered by "Failed" may therefore contain "Canceled" ones.
 */
export function statusOf({ latest_build: build }: Workspace): WorkspaceStatus {
  return build.status === "failed" && stateOf(build.job) === "canceled" ? "canceled" : build.status;
}

export const AGENT_STATUS: Record<WorkspaceAgent["status"], readonly [word: string, tone: Tone]> = {
  connecting: ["Connecting", "busy"],
  connected: ["Connected", "good"],
  disconnected: ["Disconnected", "bad"],
  timeout: ["Not attached", "warn"],
};

/**
 * The state of an agent. No program runs on an external machine before its first connection: its
 * agent is neither "connecting" nor late, and nothing is wrong, as the workspace's own state says.
 */
export function agentState(
  agent: Pick<WorkspaceAgent, "status" | "first_connected_at">,
  external: boolean,
): readonly [word: string, tone: Tone] {
  const absent =
    external &&
    (agent.status === "connecting" || agent.status === "timeout") &&
    !agent.first_connected_at;
  return absent ? [AGENT_STATUS.timeout[0], "idle"] : AGENT_STATUS[agent.status];
}

export function isActive(workspace: Workspace): boolean {
  return ["pending", "running", "canceling"].includes(workspace.latest_build.job.status);
}

export function agentsOf(workspace: Workspace): WorkspaceAgent[] {
  return workspace.latest_build.resources.flatMap((resource) => resource.agents ?? []);
}

/** Whether the workspace stands for a machine whose agent has never connected. */
export function isUnattached(workspace: Workspace): boolean {
  const agents = agentsOf(workspace);
  return (
    workspace.latest_build.has_external_agent === true &&
    workspace.latest_build.status === "running" &&
    agents.length > 0 &&
    agents.every((agent) => agent.status === "timeout" || agent.status === "connecting")
  );
}

/**
 * The problem of a running workspace, null for none. An agent that may still connect is not a
 * problem: it keeps the tone of its own label.
 */
export function healthProblemOf(workspace: Workspace): readonly [words: string, tone: Tone] | null {
  if (workspace.latest_build.status !== "running") return null;
  const states = agentsOf(workspace).map((agent) => agent.status);
  if (states.length === 0) return ["no agent", "idle"];
  if (workspace.health.healthy) return null;
  if (states.includes("disconnected")) return ["agent disconnected", "warn"];
  if (states.includes("timeout")) return ["agent not attached", AGENT_STATUS.timeout[1]];
  if (states.includes("connecting")) return ["agent connecting", AGENT_STATUS.connecting[1]];
  return ["unhealthy", "warn"];
}
