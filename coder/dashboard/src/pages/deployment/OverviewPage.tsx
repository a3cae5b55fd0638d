// Deployment overview: workspaces by state, usage, and the options set.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";

import { usePermissions } from "../../api/permissions";
import {
  dailyUsers,
  deploymentConfig,
  deploymentStats,
  experiments,
  safeExperiments,
  updateCheck,
  userStatusCounts,
} from "../../api/queries/deployment";
import { buildInfo } from "../../api/queries/session";
import { Ago } from "../../ui/Ago";
import { Facts, Section } from "../../ui/Card";
import { Failure, LoadFailure } from "../../ui/Failure";
import { Skeleton } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { Now } from "./Now";
import { OptionTable } from "./OptionsPage";
import { PermissionDenied } from "../../ui/PermissionDenied";

const Chart = lazy(async () => ({ default: (await import("../../ui/Chart")).Chart }));
const SHOWN = ["access-url", "wildcard-access-url", "cache-dir", "provisioner-daemons", "docs-url"];

export function OverviewPage() {
  useTitle("Overview", "Deployment");
  const may = usePermissions();
  const config = useQuery({ ...deploymentConfig, enabled: may.viewDeploymentConfig });
  const stats = useQuery({ ...deploymentStats, enabled: may.viewDeploymentStats });
  const info = useQuery(buildInfo).data;
  const available = useQuery(safeExperiments).data ?? [];
  const experimentList = useQuery(experiments);
  const enabledExperiments = experimentList.data ?? [];
  if (may.known && !may.viewDeploymentConfig)
    return <PermissionDenied subject="the deployment's settings" />;
  const experimentRow = config.data?.options.find((option) => option.flag === "experiments");
  const experimentFlags = Object.fromEntries(
    [...new Set([...enabledExperiments, ...available])].map((name) => [
      name,
      enabledExperiments.includes(name),
    ]),
  );
  const unknown = stats.isLoadingError ? "-" : undefined;
  const shown = SHOWN.flatMap(
    (flag) => config.data?.options.filter((option) => option.flag === flag) ?? [],
  );
  return (
    <>
      <PageHead
        title="Overview"
        description={
          info ? (
            <>
              Coder {info.version}
              {stats.data ? (
                <>
                  . Figures updated <Ago at={stats.data.collected_at} />.
                </>
              ) : null}
            </>
          ) : null
        }
      />
      <Stack>
        <NewRelease />
        {stats.isError ? <Failure error={stats.error} retry={() => void stats.refetch()} /> : null}
        {may.viewDeploymentStats ? <Now stats={stats.data} unknown={unknown} /> : null}
        {may.viewDeploymentStats ? <DailyUsers /> : null}
        {may.viewDeploymentStats ? <Accounts /> : null}
        <Section
          title="Experiments"
          description={
            !experimentList.data ? null : enabledExperiments.length === 0 ? (
              <>
                No experiments are enabled. Enable them with{" "}
                <code className="whitespace-nowrap">--experiments</code>.
              </>
            ) : (
              <>
                Enabled with <code className="whitespace-nowrap">--experiments</code>; they may
                change or be removed.
              </>
            )
          }
        >
          <LoadFailure query={experimentList} title="Failed to load the experiments" />
          {experimentRow && experimentList.data ? (
            <OptionTable
              label="Experiments"
              options={[{ ...experimentRow, value: experimentFlags }]}
            />
          ) : null}
        </Section>
        {config.isError ? (
          <Failure error={config.error} retry={() => void config.refetch()} />
        ) : null}
        <Section
          title="Settings"
          padded={false}
          actions={<TextLink to="/deployment/settings">All settings</TextLink>}
        >
          {config.data ? (
            <OptionTable label="Settings" options={shown} />
          ) : config.isPending ? (
            <div className="p-4">
              <Skeleton className="h-32" />
            </div>
          ) : null}
        </Section>
        <Section title="This server">
          <Facts
            items={[
              ["Version", info?.version ?? ""],
              [
                "Deployment",
                <code key="id" className="text-sm">
                  {info?.deployment_id}
                </code>,
              ],
              ["Agent API", info?.agent_api_version ?? ""],
              ["Provisioner API", info?.provisioner_api_version ?? ""],
            ]}
          />
        </Section>
      </Stack>
    </>
  );
}

/** A newer release, where the administrator named a list of releases and turned the update check on. */
function NewRelease() {
  const found = useQuery(updateCheck).data;
  if (!found || found.current) return null;
  return (
    <Notice kind="info" title={`Coder ${found.version} is available`}>
      {found.url && (
        <>
          Read its{" "}
          <a href={found.url} target="_blank" rel="noreferrer noopener">
            release notes
          </a>
          .{" "}
        </>
      )}
      Run <code className="whitespace-nowrap">coder upgrade</code> on the server to see what
      changes.
    </Notice>
  );
}

function DailyUsers() {
  const answer = useQuery(dailyUsers);
  const entries = answer.data?.entries;
  const times = useMemo(() => (entries ?? []).map((entry) => Date.parse(entry.date)), [entries]);
  const series = useMemo(
    () => [{ name: "Active users", values: (entries ?? []).map((entry) => entry.amount) }],
    [entries],
  );
  return (
    <Section
      title="Daily active users"
      description="Users who connected to a workspace on that day."
    >
      {answer.isLoadingError ? (
        <Failure error={answer.error} retry={() => void answer.refetch()} />
      ) : times.length > 0 ? (
        <Suspense fallback={<Skeleton className="h-56" />}>
          <Chart
            label="Daily active users"
            times={times}
            series={series}
            bars
            nothing="No user has connected to a workspace yet."
          />
        </Suspense>
      ) : answer.isPending ? (
        <Skeleton className="h-56" />
      ) : (
        <p className="text-muted">No user has connected to a workspace yet.</p>
      )}
    </Section>
  );
}

function Accounts() {
  const answer = useQuery(userStatusCounts);
  const counts = answer.data;
  const times = useMemo(
    () => (counts?.["active"] ?? []).map((entry) => Date.parse(entry.date)),
    [counts],
  );
  const series = useMemo(
    () =>
      [
        ["active", "Active"],
        ["dormant", "Dormant"],
        ["suspended", "Suspended"],
      ]
        .map(([key = "", name = ""]) => ({
          name,
          values: (counts?.[key] ?? []).map((entry) => entry.count),
        }))
        .filter((line) => line.values.length > 0),
    [counts],
  );
  if (times.length === 0)
    return <LoadFailure query={answer} title="Failed to load the accounts by status" />;
  return (
    <Section title="Accounts" description="By status, per day.">
      <Suspense fallback={<Skeleton className="h-56" />}>
        <Chart
          label="Accounts by status"
          times={times}
          series={series}
          nothing="No data yet. Accounts are counted once a day."
        />
      </Suspense>
    </Section>
  );
}
