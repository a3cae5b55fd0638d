// Timings of a build: one bar per stage, which expands into its parts.
import { useQuery } from "@tanstack/react-query";

import { ApiError } from "../../../api/client";
import { buildTimings } from "../../../api/queries/workspaces";
import type { WorkspaceBuildTimings } from "../../../api/types";
import { Failure } from "../../../ui/Failure";
import { duration } from "../../../lib/time";

interface Part {
  name: string;
  from: number;
  to: number;
}
interface Stage extends Part {
  parts: Part[];
}

const NAMES: Record<string, string> = {
  init: "Prepare",
  plan: "Plan",
  graph: "Graph",
  apply: "Apply",
  start: "Start scripts",
  stop: "Stop scripts",
  cron: "Scheduled scripts",
  connect: "Connect",
};

export function stagesOf(timings: WorkspaceBuildTimings): Stage[] {
  const stages = new Map<string, Stage>();
  const add = (stage: string, name: string, started: string, ended: string) => {
    const from = Date.parse(started);
    const to = Date.parse(ended);
    if (!(from > 0) || !(to >= from)) return;
    const entry = stages.get(stage) ?? { name: NAMES[stage] ?? stage, from, to, parts: [] };
    entry.from = Math.min(entry.from, from);
    entry.to = Math.max(entry.to, to);
    entry.parts.push({ name, from, to });
    stages.set(stage, entry);
  };
  for (const item of timings.provisioner_timings)
    add(
      item.stage,
      `${item.resource}${item.action ? ` (${item.action})` : ""}`,
      item.started_at,
      item.ended_at,
    );
  for (const item of timings.agent_connection_timings)
    add(item.stage, item.workspace_agent_name, item.started_at, item.ended_at);
  for (const item of timings.agent_script_timings)
    add(
      item.stage,
      `${item.display_name}${item.exit_code === 0 ? "" : ` (exit code ${item.exit_code})`}`,
      item.started_at,
      item.ended_at,
    );
  return [...stages.values()].sort((a, b) => a.from - b.from);
}

export function Timings({ build }: { build: string }) {
  const answer = useQuery({ ...buildTimings(build), retry: false });
  if (answer.isLoadingError && !(answer.error instanceof ApiError && answer.error.status === 404))
    return (
      <Failure
        error={answer.error}
        title="Failed to load the timings"
        retry={() => void answer.refetch()}
      />
    );
  const stages = answer.data ? stagesOf(answer.data) : [];
  if (stages.length === 0)
    return (
      <p className="text-sm text-muted">
        {answer.isPending ? "Loading…" : "No timings were recorded for this build."}
      </p>
    );
  const start = Math.min(...stages.map((stage) => stage.from));
  const total = Math.max(1, Math.max(...stages.map((stage) => stage.to)) - start);
  const bar = (part: Part, strong: boolean) => (
    <span aria-hidden="true" className="relative h-2.5 min-w-8 flex-1 rounded-full bg-hover">
      <span
        className={`absolute h-full rounded-full ${strong ? "bg-accent" : "bg-faint"}`}
        style={{
          left: `${((part.from - start) / total) * 100}%`,
          width: `max(3px, ${((part.to - part.from) / total) * 100}%)`,
        }}
      />
    </span>
  );
  return (
    <div className="flex flex-col gap-1.5">
      {stages.map((stage) => (
        <details key={stage.name}>
          <summary className="flex items-center gap-2 text-sm">
            <span className="w-24 shrink-0 truncate font-medium">{stage.name}</span>
            {bar(stage, true)}
            <span className="w-14 shrink-0 text-right text-muted tabular-nums">
              {duration(stage.to - stage.from)}
            </span>
          </summary>
          <ul className="my-1.5 flex flex-col gap-1">
            {stage.parts
              .sort((a, b) => a.from - b.from)
              .map((part, index) => (
                <li key={index} className="flex items-center gap-2 text-sm text-muted">
                  <span className="w-30 shrink-0 truncate pl-6" title={part.name}>
                    {part.name}
                  </span>
                  {bar(part, false)}
                  <span className="w-14 shrink-0 text-right tabular-nums">
                    {duration(part.to - part.from)}
                  </span>
                </li>
              ))}
          </ul>
        </details>
      ))}
      <p className="text-right text-sm text-muted">Total {duration(total)}</p>
    </div>
  );
}
