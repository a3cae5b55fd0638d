// Usage of a template: users, applications, latency.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo, useState } from "react";
import { useSearchParams } from "react-router";

import { get, withQuery } from "../../api/client";
import type {
  TemplateInsightsResponse,
  UserActivityInsightsResponse,
  UserLatencyInsightsResponse,
} from "../../api/types";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { Skeleton } from "../../ui/Loading";
import { Stack } from "../../ui/Page";
import { duration } from "../../lib/time";
import { useTitle } from "../../ui/title";
import { periodOf, rangeOf } from "./insights-range";
import { useTemplateContext } from "./TemplateLayout";
import { counted } from "../../lib/words";
import { PeriodFields } from "./PeriodFields";
import { Unknown, People, Placeholder, ExpandableList } from "./InsightsLists";

const Chart = lazy(async () => ({ default: (await import("../../ui/Chart")).Chart }));
const VALUES_SHOWN = 5;

export function InsightsPage() {
  const { template } = useTemplateContext();
  useTitle(`${template.name} · Insights`);
  const [params, setParams] = useSearchParams();
  const [now] = useState(Date.now);
  const chosen = periodOf(params, now);
  const { from, to, problem } = chosen;
  const { interval, ...period } = useMemo(
    () => (problem === undefined ? rangeOf({ from, to }, now) : NO_RANGE),
    [from, to, problem, now],
  );
  const ids = { template_ids: template.id };
  const enabled = problem === undefined;
  const usage = useQuery({
    enabled,
    queryKey: ["insights", "templates", template.id, from, to],
    queryFn: () =>
      get<TemplateInsightsResponse>(
        withQuery("/api/v2/insights/templates", { ...period, interval, ...ids }),
      ),
  });
  const latency = useQuery({
    enabled,
    queryKey: ["insights", "latency", template.id, from, to],
    queryFn: () =>
      get<UserLatencyInsightsResponse>(
        withQuery("/api/v2/insights/user-latency", { ...period, ...ids }),
      ),
  });
  const activity = useQuery({
    enabled,
    queryKey: ["insights", "activity", template.id, from, to],
    queryFn: () =>
      get<UserActivityInsightsResponse>(
        withQuery("/api/v2/insights/user-activity", { ...period, ...ids }),
      ),
  });
  const reports = usage.data?.interval_reports;
  const times = useMemo(
    () => (reports ?? []).map((item) => Date.parse(item.start_time)),
    [reports],
  );
  const series = useMemo(
    () => [{ name: "Active users", values: (reports ?? []).map((item) => item.active_users) }],
    [reports],
  );
  const apps = [...(usage.data?.report?.apps_usage ?? [])]
    .filter((app) => app.seconds > 0)
    .sort((a, b) => b.seconds - a.seconds);
  const parameters = usage.data?.report?.parameters_usage ?? [];
  const [used, near, busy] = [usage, latency, activity].map((query) =>
    query.data ? "known" : enabled && query.isPending ? "asked" : "unknown",
  );
  return (
    <Stack>
      <PeriodFields
        period={chosen}
        onChange={(next) => setParams({ ...next }, { replace: true })}
      />
      {[latency, activity].map((query, index) =>
        query.isError && !usage.isError ? (
          <Failure key={index} error={query.error} retry={() => void query.refetch()} />
        ) : null,
      )}
      {usage.isError ? <Failure error={usage.error} retry={() => void usage.refetch()} /> : null}
      <Section
        title="Active users"
        description={
          usage.data?.report && usage.data.report.active_users > 0
            ? `${counted(usage.data.report.active_users, "user", "different users")} in this period.`
            : null
        }
      >
        <div className="min-h-56">
          {used === "unknown" ? (
            <Unknown />
          ) : times.length > 0 ? (
            <Suspense fallback={<Skeleton className="h-56" />}>
              <Chart
                label="Active users"
                times={times}
                series={series}
                nothing="No active users in this period."
              />
            </Suspense>
          ) : used === "asked" ? (
            <Skeleton className="h-56" />
          ) : (
            <p className="text-muted">No active users in this period.</p>
          )}
        </div>
      </Section>
      <div className="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
        <Section
          title="Latency by user"
          description="Median latency between the user and the workspace."
        >
          <People
            state={near}
            rows={(latency.data?.report.users ?? []).map((user) => ({
              id: user.user_id,
              name: user.username,
              picture: user.avatar_url,
              value: `${Math.round(user.latency_ms.p50)} ms`,
            }))}
          />
        </Section>
        <Section title="Activity by user">
          <People
            state={busy}
            rows={[...(activity.data?.report.users ?? [])]
              .sort((a, b) => b.seconds - a.seconds)
              .map((user) => ({
                id: user.user_id,
                name: user.username,
                picture: user.avatar_url,
                value: duration(user.seconds * 1000),
              }))}
          />
        </Section>
        <Section title="Applications">
          <People
            square
            state={used}
            rows={apps.map((app) => ({
              id: app.slug,
              name: app.display_name,
              picture: app.icon,
              value: duration(app.seconds * 1000),
            }))}
          />
        </Section>
        <Section title="Parameters">
          {used !== "known" ? (
            <Placeholder state={used} />
          ) : parameters.length === 0 ? (
            <p className="text-muted">No parameters were used in this period.</p>
          ) : (
            <Stack>
              {parameters.map((parameter) => (
                <div key={parameter.name}>
                  <h3 className="font-medium">{parameter.display_name || parameter.name}</h3>
                  <ExpandableList
                    all={[...parameter.values].sort((a, b) => b.count - a.count)}
                    shown={VALUES_SHOWN}
                    className=""
                    row={(item) => (
                      <li key={item.value} className="flex justify-between gap-4 text-sm">
                        <span className="truncate">{item.value || "(empty)"}</span>
                        <span className="text-muted tabular-nums">{item.count}</span>
                      </li>
                    )}
                  />
                </div>
              ))}
            </Stack>
          )}
        </Section>
      </div>
    </Stack>
  );
}

const NO_RANGE = { start_time: "", end_time: "", interval: "day" };
