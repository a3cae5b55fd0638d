// The connection of an agent, and help by the template's author.
import { useLongLost } from "../../../api/connection";
import type { WorkspaceAgent } from "../../../api/types";
import { StatusText } from "../../../ui/Badge";
import { agentState } from "../../../features/workspace/status";

export function AgentStatus({ agent, external }: { agent: WorkspaceAgent; external: boolean }) {
  const [word, tone] = agentState(agent, external);
  const lost = useLongLost(); // the state may have changed since
  const ready = agent.status === "connected" && agent.lifecycle_state === "ready";
  return (
    <span data-testid="agent-status" data-status={agent.status} role="status">
      <StatusText tone={lost ? "idle" : tone} pulse={!lost && tone === "busy"}>
        <span data-testid={ready ? "agent-status-ready" : undefined}>
          {lost ? `Last known: ${word.toLowerCase()}` : word}
        </span>
      </StatusText>
    </span>
  );
}

/** Help by the template's author for agents that do not connect or are unhealthy. */
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
