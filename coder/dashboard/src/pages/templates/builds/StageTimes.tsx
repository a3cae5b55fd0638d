// The times of a version's builds, stage by stage.
import type { BuildStageReport } from "../../../api/types";
import { duration } from "../../../lib/time";
import { DataTable, type Column } from "../../../ui/lists/DataTable";

const STAGES: Readonly<Record<BuildStageReport["stage"], string>> = {
  queue: "Wait for a provisioner",
  init: "Prepare (init)",
  plan: "Plan",
  graph: "Graph",
  apply: "Apply",
  total: "Whole build",
  connect: "Until the agent connects",
  start: "Startup scripts",
};

export function StageTimes({ stages }: { stages: readonly BuildStageReport[] }) {
  return stages.length === 0 ? (
    <p className="px-5 py-4 text-muted">No start of this version succeeded: no times are known.</p>
  ) : (
    <DataTable
      label="Times by stage"
      bare
      data={stages}
      columns={COLUMNS}
      rowKey={({ stage }) => stage}
    />
  );
}

const COLUMNS: readonly Column<BuildStageReport>[] = [
  {
    id: "stage",
    header: "Stage",
    width: "40%",
    cell: ({ stage }) => (
      <span className={stage === "total" ? "font-semibold" : undefined}>{STAGES[stage]}</span>
    ),
  },
  {
    id: "p50",
    header: "p50",
    align: "right",
    width: "20%",
    sort: ({ p50_ms }) => p50_ms,
    cell: ({ p50_ms }) => <span className="tabular-nums">{duration(p50_ms)}</span>,
  },
  {
    id: "p95",
    header: "p95",
    align: "right",
    width: "20%",
    sort: ({ p95_ms }) => p95_ms,
    cell: ({ p95_ms }) => <span className="tabular-nums">{duration(p95_ms)}</span>,
  },
  {
    id: "samples",
    header: "Measured",
    align: "right",
    extra: true,
    width: "20%",
    cell: ({ samples }) => <span className="text-muted tabular-nums">{samples}</span>,
  },
];
