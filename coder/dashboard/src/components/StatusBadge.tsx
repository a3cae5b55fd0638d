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
  const unhealthy = workspace.latest_build.status === "running" && !workspace.health.healthy;
  return (
    <span className={`badge ${unhealthy ? "warn" : tone}`}>
      <span className="dot" aria-hidden="true" />
      <span><span className="hidden">Workspace status: </span>{word}</span>
      {unhealthy ? <span className="sub">· unhealthy</span> : null}
    </span>
  );
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
