// The agent's log while it is written: all of it, or one source.
import { Download } from "lucide-react";
import { useMemo, useState } from "react";

import type { WorkspaceAgent } from "../../api/types";
import { buttonClass } from "../../ui/Button";
import { LogView } from "../../ui/text/LogView";
import { useAgentLog } from "../build/logs";

export function AgentLogs({ agent }: { agent: WorkspaceAgent }) {
  const { lines } = useAgentLog(agent.id);
  const [source, setSource] = useState("");
  const named = useMemo(
    () => new Map(agent.log_sources.map((item) => [item.id, item.display_name])),
    [agent.log_sources],
  );
  const present = useMemo(
    () => [...new Set(lines.map((line) => line.source_id))].filter((id) => named.has(id)),
    [lines, named],
  );
  const shown = useMemo(
    () =>
      lines
        .filter((line) => source === "" || line.source_id === source)
        .map((line) => ({
          id: line.id,
          text: line.output,
          level: line.level,
          at: line.created_at,
          ...(source === "" && present.length > 1
            ? { stage: named.get(line.source_id) ?? "Agent" }
            : {}),
        })),
    [lines, source, named, present.length],
  );
  return (
    <section aria-label="Agent log" className="flex flex-col gap-2">
      <div className="flex flex-wrap items-center gap-1" role="group" aria-label="Log source">
        {present.length > 1 ? (
          [
            ["", "All logs"] as const,
            ...present.map((id) => [id, named.get(id) ?? id] as const),
          ].map(([id, name]) => (
            <button
              key={id}
              type="button"
              aria-pressed={source === id}
              onClick={() => setSource(id)}
              className="rounded-md px-2 py-1 text-sm font-medium text-muted hover:bg-hover aria-pressed:bg-hover aria-pressed:text-text"
            >
              {name}
            </button>
          ))
        ) : (
          <h3 className="text-sm font-medium text-muted">Agent log</h3>
        )}
      </div>
      <LogView
        label="Agent log lines"
        lines={shown}
        testId="agent-log"
        empty="No log lines yet. Output of the agent’s scripts appears here."
        actions={
          <a
            className={buttonClass("quiet", "sm")}
            href={`/api/v2/workspaceagents/${agent.id}/logs?format=text`}
            download={`${agent.name}-logs.txt`}
            aria-label="Download the agent's log"
          >
            <Download />
          </a>
        }
      />
    </section>
  );
}
