import type { Workspace, WorkspaceAgent, WorkspaceStatus } from "./types";

const WORDS: Record<WorkspaceStatus, [string, string]> = {
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

export function WorkspaceBadge({ workspace }: { workspace: Workspace }) {
  const [word, tone] = WORDS[workspace.latest_build.status];
  const trouble = workspace.latest_build.status === "running" && !workspace.health.healthy ? troubleOf(workspace) : null;
  return (
    <span className={`badge ${trouble ? "warn" : tone}`}>
      <span className="dot" aria-hidden="true" />
      <span><span className="hidden">Workspace status: </span>{word}</span>
      {trouble ? <span className="sub">{trouble}</span> : null}
    </span>
  );
}

// A machine that has yet to be attached is no illness.
function troubleOf(workspace: Workspace): string {
  const states = workspace.latest_build.resources.flatMap((resource) => (resource.agents ?? []).map((agent) => agent.status));
  if (states.includes("disconnected")) return "agent disconnected";
  if (states.includes("connecting") || states.includes("timeout")) return "waiting for its agent";
  return "unhealthy";
}

const AGENT: Record<WorkspaceAgent["status"], [string, string]> = {
  connecting: ["Waiting for the agent", "busy"],
  connected: ["Connected", "good"],
  disconnected: ["Disconnected", "bad"],
  timeout: ["Not connected yet", "warn"],
};

export function AgentBadge({ agent }: { agent: WorkspaceAgent }) {
  const [word, tone] = AGENT[agent.status];
  const ready = agent.status === "connected" && agent.lifecycle_state === "ready";
  return (
    <span className={`badge ${tone}`} data-testid="agent-status" data-status={agent.status} role="status">
      <span className="dot" aria-hidden="true" data-testid={ready ? "agent-status-ready" : undefined} />
      {word}
    </span>
  );
}
