// What runs unused, by owner and by template, and what a rule would have saved before it is set.
import { useQuery } from "@tanstack/react-query";
import { Clock } from "lucide-react";
import { useState } from "react";

import type { Workspace } from "../../../api/types";
import { templatePath } from "../../../features/template/paths";
import { counted, countedAtStart } from "../../../lib/words";
import { Ago } from "../../../ui/Ago";
import { ButtonLink } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { SelectField } from "../../../ui/forms/Field";
import { DataTable, type Column } from "../../../ui/lists/DataTable";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack, TextLink } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { allMatching, MOST } from "../../../features/workspace/all-matching";
import { workspacePath } from "../paths";
import { idleOf, savedHours, totals, type Idle, type Total } from "./idle";

const QUERY = "status:running";
const LIMITS = [1, 2, 4, 8, 12, 24, 72] as const;
const LISTED = 20;

const hours = (count: number) => counted(Math.round(count), "hour");
const figure = (text: string) => <span className="text-muted tabular-nums">{text}</span>;

export function IdlePage() {
  useTitle("Idle workspaces");
  const list = useQuery({
    queryKey: ["workspaces", QUERY, "all"],
    queryFn: () => allMatching(QUERY),
    staleTime: 60_000,
  });
  return (
    <>
      <PageHead
        title="Idle workspaces"
        crumbs={[["Workspaces", "/workspaces"], ["Idle"]]}
        description="Workspaces that run without being used, and what stopping them would save."
      />
      {list.isPending ? <SkeletonRows rows={6} /> : null}
      {list.isLoadingError ? (
        <Failure error={list.error} retry={() => void list.refetch()} />
      ) : null}
      {list.data ? <Report workspaces={list.data} now={list.dataUpdatedAt} /> : null}
    </>
  );
}

function Report({ workspaces, now }: { workspaces: readonly Workspace[]; now: number }) {
  const [limit, setLimit] = useState("8");
  const idle = idleOf(workspaces);
  const rule = Number(limit);
  const unused = idle.filter((item) => savedHours(item, rule, now) > 0);
  const all = totals(idle, "owner", rule, now);
  const saved = all.reduce((sum, total) => sum + total.hours, 0);
  const cost = all.reduce((sum, total) => sum + total.cost, 0);
  if (idle.length === 0)
    return (
      <div className="rounded-xl border border-line bg-surface">
        <Empty
          icon={Clock}
          title="No workspace is running"
          actions={<ButtonLink to="/workspaces">View workspaces</ButtonLink>}
        >
          Running workspaces that you may see appear here with the time since their last use.
        </Empty>
      </div>
    );
  return (
    <Stack>
      <Section
        title="Rule"
        description={
          "Counts the workspaces that run now, over the last 30 days. Earlier runs left no record of use, so the " +
          "real saving is at least this."
        }
      >
        <div className="flex flex-wrap items-end gap-x-8 gap-y-3">
          <div className="w-56">
            <SelectField
              label="Stop after this time without use"
              value={limit}
              onChange={setLimit}
              options={LIMITS.map((count) => [String(count), hours(count)] as const)}
            />
          </div>
          <p role="status" aria-label="Saving" className="min-h-6 pb-1.5">
            {unused.length === 0 ? (
              "This rule would have stopped nothing."
            ) : (
              <>
                {countedAtStart(unused.length, "workspace")} stopped,{" "}
                <strong className="font-semibold">{hours(saved)}</strong> saved
                {cost > 0 ? ` (${cost.toFixed(1)} credits)` : ""}
              </>
            )}
          </p>
        </div>
      </Section>
      {workspaces.length >= MOST ? (
        <Notice kind="info" title={`Only the first ${MOST} running workspaces are counted`} />
      ) : null}
      <Section title="By owner" padded={false}>
        <Totals label="Owners" totals={all} />
      </Section>
      <Section
        title="By template"
        description="A template’s schedule sets the rule for all its workspaces."
        padded={false}
      >
        <Totals
          label="Templates"
          totals={totals(idle, "template", rule, now)}
          settings={({ name, organization }) =>
            `${templatePath({ name, organization_name: organization })}/settings/schedule`
          }
        />
      </Section>
      <Section title="Longest unused" padded={false}>
        <DataTable
          label="Longest unused"
          bare
          data={idle.slice(0, LISTED)}
          columns={LONGEST}
          rowKey={({ workspace }) => workspace.id}
        />
      </Section>
    </Stack>
  );
}

const LONGEST: readonly Column<Idle>[] = [
  {
    id: "workspace",
    header: "Workspace",
    width: "40%",
    cell: ({ workspace }) => (
      <TextLink to={workspacePath(workspace)} className="text-text [overflow-wrap:anywhere]">
        {workspace.owner_name}/{workspace.name}
      </TextLink>
    ),
  },
  {
    id: "template",
    header: "Template",
    extra: true,
    width: "30%",
    cell: ({ workspace }) => workspace.template_display_name || workspace.template_name,
  },
  {
    id: "since",
    header: "Unused since",
    width: "30%",
    cell: ({ since }) => (
      <span className="text-muted">
        <Ago at={new Date(since).toISOString()} />
      </span>
    ),
  },
];

function Totals({
  label,
  totals: rows,
  settings,
}: {
  label: string;
  totals: readonly Total[];
  settings?: (row: Total) => string;
}) {
  const columns: Column<Total>[] = [
    {
      id: "name",
      header: "Name",
      width: "34%",
      sort: (row) => row.label,
      cell: (row) => {
        const schedule = settings?.(row);
        const namesakes = rows.filter((other) => other.label === row.label).length > 1;
        return (
          <div className="[overflow-wrap:anywhere]">
            <TextLink
              to={`/workspaces?filter=${encodeURIComponent(row.filter)}`}
              className="text-text"
            >
              {row.label}
            </TextLink>
            {namesakes ? <span className="text-muted"> in {row.organization}</span> : null}
            {schedule ? (
              <p className="text-sm">
                <TextLink to={schedule}>Schedule</TextLink>
              </p>
            ) : null}
          </div>
        );
      },
    },
    {
      id: "running",
      header: "Running",
      align: "right",
      width: "14%",
      sort: (row) => -row.running,
      cell: (row) => figure(String(row.running)),
    },
    {
      id: "stopped",
      header: "Would stop",
      align: "right",
      extra: true,
      width: "16%",
      sort: (row) => -row.stopped,
      cell: (row) => figure(String(row.stopped)),
    },
    {
      id: "hours",
      header: "Hours saved",
      align: "right",
      width: "18%",
      sort: (row) => -row.hours,
      cell: (row) => figure(String(Math.round(row.hours))),
    },
    {
      id: "cost",
      header: "Credits saved",
      align: "right",
      extra: true,
      width: "18%",
      sort: (row) => -row.cost,
      cell: (row) => figure(row.cost > 0 ? row.cost.toFixed(1) : "-"),
    },
  ];
  return <DataTable label={label} bare data={rows} columns={columns} rowKey={(row) => row.id} />;
}
