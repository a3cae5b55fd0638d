// How a template's versions do: success, build time, agents that never connect, and the commonest errors.
import { useQuery } from "@tanstack/react-query";
import { Hammer } from "lucide-react";

import { allMatching, MOST } from "../../../features/workspace/all-matching";
import { duration } from "../../../lib/time";
import { counted } from "../../../lib/words";
import { Tag } from "../../../ui/Badge";
import { Card, Section } from "../../../ui/Card";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { DataTable, type Column } from "../../../ui/lists/DataTable";
import { SkeletonRows } from "../../../ui/Loading";
import { Stack, TextLink } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { useTemplateContext } from "../TemplateLayout";
import { commonErrors, reportVersions, type VersionReport } from "./builds";

const ERRORS = 10;
const LINKS = 5;

export function BuildsPage() {
  const { template } = useTemplateContext();
  useTitle(template.name, "Builds");
  const query = `template:${template.name} organization:${template.organization_name}`;
  const list = useQuery({
    queryKey: ["workspaces", query, "all"],
    queryFn: () => allMatching(query),
    staleTime: 60_000,
  });
  if (list.isPending) return <SkeletonRows rows={3} />;
  if (list.isLoadingError) return <Failure error={list.error} retry={() => void list.refetch()} />;
  const reports = reportVersions(list.data, template.active_version_id);
  const errors = commonErrors(list.data);
  if (reports.length === 0)
    return (
      <Card>
        <Empty icon={Hammer} title="No builds yet">
          Versions appear here with their success rate once workspaces are built from them.
        </Empty>
      </Card>
    );
  return (
    <Stack>
      <Section
        title="Versions"
        description={
          list.data.length >= MOST
            ? `From the latest build of ${MOST} workspaces that you may see.`
            : `From the latest build of ${counted(list.data.length, "workspace")} that you may see.`
        }
        padded={false}
      >
        <DataTable
          label="Versions"
          bare
          data={reports}
          columns={COLUMNS}
          rowKey={(report) => report.version}
        />
      </Section>
      <Section title="Commonest errors" padded={false}>
        {errors.length === 0 ? (
          <p className="px-5 py-4 text-muted">No latest build failed.</p>
        ) : (
          <ul className="divide-y divide-line">
            {errors.slice(0, ERRORS).map(({ text, workspaces }) => (
              <li key={text} className="px-5 py-2.5">
                <p className="[overflow-wrap:anywhere]">
                  <span className="mr-2 text-muted tabular-nums">{workspaces.length}×</span>
                  {text}
                </p>
                <p className="flex flex-wrap gap-x-3 text-sm text-muted">
                  {workspaces.slice(0, LINKS).map((workspace) => (
                    <TextLink
                      key={workspace.id}
                      to={`/@${workspace.owner_name}/${workspace.name}/builds/${workspace.latest_build.build_number}`}
                    >
                      {workspace.owner_name}/{workspace.name}
                    </TextLink>
                  ))}
                  {workspaces.length > LINKS ? `${workspaces.length - LINKS} more` : null}
                </p>
              </li>
            ))}
          </ul>
        )}
      </Section>
    </Stack>
  );
}

const time = (ms: number | null) => (
  <span className="text-muted tabular-nums">{ms === null ? "-" : duration(ms)}</span>
);

const COLUMNS: readonly Column<VersionReport>[] = [
  {
    id: "version",
    header: "Version",
    width: "30%",
    cell: (report) => (
      <span className="font-medium [overflow-wrap:anywhere]">
        {report.name} {report.active ? <Tag tone="accent">Active</Tag> : null}
      </span>
    ),
  },
  {
    id: "success",
    header: "Succeeded",
    width: "20%",
    sort: (report) => (report.ended === 0 ? 2 : report.failed / report.ended),
    cell: ({ ended, failed }) =>
      ended === 0 ? (
        <span className="text-muted">-</span>
      ) : (
        <span className={failed > 0 ? "text-bad" : "text-good"}>
          {Math.round(((ended - failed) / ended) * 100)} %{" "}
          <span className="text-sm text-muted">of {ended}</span>
        </span>
      ),
  },
  {
    id: "p50",
    header: "Build time p50",
    align: "right",
    extra: true,
    width: "15%",
    cell: (report) => time(report.p50),
  },
  {
    id: "p95",
    header: "p95",
    align: "right",
    extra: true,
    width: "13%",
    cell: (report) => time(report.p95),
  },
  {
    id: "unconnected",
    header: "Never connected",
    align: "right",
    extra: true,
    width: "22%",
    cell: ({ unconnected }) => (
      <span className={unconnected > 0 ? "text-warn" : "text-muted"}>{unconnected}</span>
    ),
  },
];
