// An agent's connection: what it is now, and how far it is.
import type { WorkspaceAgent } from "../../../api/types";
import { StatusText } from "../../../ui/Badge";
import { AGENT_STATUS } from "../../../features/workspace/status";

export function AgentStatus({ agent }: { agent: WorkspaceAgent }) {
  const [word, tone] = AGENT_STATUS[agent.status];
  const ready = agent.status === "connected" && agent.lifecycle_state === "ready";
  return (
    <span data-testid="agent-status" data-status={agent.status} role="status">
      <StatusText tone={tone} pulse={agent.status === "connecting"}>
        <span data-testid={ready ? "agent-status-ready" : undefined}>{word}</span>
      </StatusText>
    </span>
  );
}

/** What the template's author has written about agents that do not connect, or are not well. */
export function Troubleshooting({ agent }: { agent: Pick<WorkspaceAgent, "troubleshooting_url"> }) {
  return /^https?:/i.test(agent.troubleshooting_url) ? (
    <a
      className="text-sm font-medium underline"
      href={agent.troubleshooting_url}
      target="_blank"
      rel="noreferrer"
    >
      Troubleshooting
    </a>
  ) : null;
}
