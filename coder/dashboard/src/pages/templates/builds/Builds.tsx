// Builds of a template, each with a link to its page.
import type { ReportedBuild } from "../../../api/types";
import { JOB_TONES, JOB_WORDS } from "../../../features/provisioner/job-states";
import { duration } from "../../../lib/time";
import { Ago } from "../../../ui/Ago";
import { StatusText } from "../../../ui/Badge";
import { DataTable, type Column } from "../../../ui/lists/DataTable";
import { TextLink } from "../../../ui/Page";
import { buildPath } from "./Errors";

const TRANSITIONS: Readonly<Record<ReportedBuild["transition"], string>> = {
  start: "Start",
  stop: "Stop",
  delete: "Delete",
};

export function Builds({ label, builds }: { label: string; builds: readonly ReportedBuild[] }) {
  return <DataTable label={label} bare data={builds} columns={COLUMNS} rowKey={buildPath} />;
}

const COLUMNS: readonly Column<ReportedBuild>[] = [
  {
    id: "build",
    header: "Build",
    width: "34%",
    cell: (build) => (
      <TextLink to={buildPath(build)}>
        {build.workspace_owner_name}/{build.workspace_name} #{build.build_number}
      </TextLink>
    ),
  },
  {
    id: "kind",
    header: "Action",
    extra: true,
    width: "12%",
    cell: ({ transition }) => TRANSITIONS[transition],
  },
  {
    id: "status",
    header: "Status",
    width: "30%",
    sort: ({ status }) => status,
    cell: ({ status, error, never_connected }) => (
      <>
        <StatusText tone={JOB_TONES[status]}>{JOB_WORDS[status]}</StatusText>
        {error || never_connected.length > 0 ? (
          <p className="text-sm text-muted [overflow-wrap:anywhere]">
            {error || `never connected: ${never_connected.join(", ")}`}
          </p>
        ) : null}
      </>
    ),
  },
  {
    id: "time",
    header: "Time",
    align: "right",
    extra: true,
    width: "10%",
    sort: ({ duration_ms }) => duration_ms ?? Infinity,
    cell: ({ duration_ms }) => (
      <span className="text-muted tabular-nums">
        {duration_ms === null ? "-" : duration(duration_ms)}
      </span>
    ),
  },
  {
    id: "created",
    header: "Created",
    align: "right",
    extra: true,
    width: "14%",
    sort: ({ created_at }) => created_at,
    cell: ({ created_at }) => <Ago at={created_at} />,
  },
];
