// The versions of a template with their success rates.
import type { VersionBuildReport } from "../../../api/types";
import { duration } from "../../../lib/time";
import { Tag } from "../../../ui/Badge";
import { DataTable, type Column } from "../../../ui/lists/DataTable";

export function Versions({
  versions,
  onChoose,
}: {
  versions: readonly VersionBuildReport[];
  onChoose: (version: string) => void;
}) {
  const name: Column<VersionBuildReport> = {
    id: "version",
    header: "Version",
    width: "30%",
    cell: (version) => (
      <span className="font-medium [overflow-wrap:anywhere]">
        <button
          type="button"
          className="text-left font-medium text-accent-text hover:underline"
          aria-label={`Show the times and builds of ${version.template_version_name}`}
          onClick={() => onChoose(version.template_version_id)}
        >
          {version.template_version_name}
        </button>{" "}
        {version.active ? <Tag tone="accent">Active</Tag> : null}
      </span>
    ),
  };
  return (
    <DataTable
      label="Versions"
      bare
      data={versions}
      columns={[name, ...FIGURES]}
      rowKey={(version) => version.template_version_id}
    />
  );
}

function totalOf(version: VersionBuildReport, share: "p50_ms" | "p95_ms"): number | undefined {
  return version.stages.find(({ stage }) => stage === "total")?.[share];
}

const time = (ms: number | undefined) => (
  <span className="text-muted tabular-nums">{ms === undefined ? "-" : duration(ms)}</span>
);

const FIGURES: readonly Column<VersionBuildReport>[] = [
  {
    id: "success",
    header: "Succeeded",
    width: "20%",
    sort: ({ succeeded, failed }) => (succeeded + failed === 0 ? 2 : failed / (succeeded + failed)),
    cell: ({ succeeded, failed }) =>
      succeeded + failed === 0 ? (
        <span className="text-muted">-</span>
      ) : (
        <span className={failed > 0 ? "text-bad" : "text-good"}>
          {Math.floor((succeeded / (succeeded + failed)) * 100)} %{" "}
          <span className="text-sm text-muted">of {succeeded + failed}</span>
        </span>
      ),
  },
  {
    id: "p50",
    header: "Build time p50",
    align: "right",
    extra: true,
    width: "15%",
    sort: (version) => totalOf(version, "p50_ms") ?? Infinity,
    cell: (version) => time(totalOf(version, "p50_ms")),
  },
  {
    id: "p95",
    header: "p95",
    align: "right",
    extra: true,
    width: "13%",
    sort: (version) => totalOf(version, "p95_ms") ?? Infinity,
    cell: (version) => time(totalOf(version, "p95_ms")),
  },
  {
    id: "unconnected",
    header: "Never connected",
    align: "right",
    extra: true,
    width: "22%",
    sort: ({ never_connected }) => never_connected,
    cell: ({ never_connected }) => (
      <span className={never_connected > 0 ? "text-warn" : "text-muted"}>{never_connected}</span>
    ),
  },
];
