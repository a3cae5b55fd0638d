// Who uses a template, how, and how quick it is for them.
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useMemo } from "react";
import { useSearchParams } from "react-router";

import { get, withQuery } from "../../api/client";
import type { TemplateInsightsResponse, UserActivityInsightsResponse, UserLatencyInsightsResponse } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { SelectField } from "../../ui/forms/Field";
import { Skeleton } from "../../ui/Loading";
import { Stack } from "../../ui/Page";
import { duration } from "../../ui/time";
import { useTitle } from "../../ui/title";
import { useTemplateContext } from "./TemplateLayout";
import { counted } from "../../ui/words";

const Chart = lazy(async () => ({ default: (await import("../../ui/Chart")).Chart }));
const RANGES = [["7", "Last 7 days"], ["30", "Last 30 days"], ["84", "Last 12 weeks"]] as const;
const DAY_MS = 86_400_000;

/** Whole UTC days, as the API wants them; the last one ends at the coming hour. */
export function rangeOf(days: number, now: number): { start_time: string; end_time: string; interval: string } {
  const iso = (time: number) => new Date(time).toISOString().replace(".000", "");
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  return { start_time: iso(today - (days - 1) * DAY_MS), end_time: iso(Math.floor(now / 3_600_000) * 3_600_000), interval: days > 60 ? "week" : "day" };
}

export function InsightsPage() {
  const { template } = useTemplateContext();
  useTitle(`${template.name} · Insights`);
  const [params, setParams] = useSearchParams();
  const days = RANGES.some(([value]) => value === params.get("days")) ? (params.get("days") ?? "7") : "7";
  const range = useMemo(() => rangeOf(Number(days), Date.now()), [days]);
  const { interval, ...period } = range;
  const ids = { template_ids: template.id };
  const usage = useQuery({ queryKey: ["insights", "templates", template.id, days], queryFn: () => get<TemplateInsightsResponse>(withQuery("/api/v2/insights/templates", { ...period, interval, ...ids })) });
  const latency = useQuery({ queryKey: ["insights", "latency", template.id, days], queryFn: () => get<UserLatencyInsightsResponse>(withQuery("/api/v2/insights/user-latency", { ...period, ...ids })) });
  const activity = useQuery({ queryKey: ["insights", "activity", template.id, days], queryFn: () => get<UserActivityInsightsResponse>(withQuery("/api/v2/insights/user-activity", { ...period, ...ids })) });
  const reports = usage.data?.interval_reports;
  const times = useMemo(() => (reports ?? []).map((item) => Date.parse(item.start_time)), [reports]);
  const series = useMemo(() => [{ name: "Active users", values: (reports ?? []).map((item) => item.active_users) }], [reports]);
  const apps = [...(usage.data?.report?.apps_usage ?? [])].filter((app) => app.seconds > 0).sort((a, b) => b.seconds - a.seconds);
  const parameters = usage.data?.report?.parameters_usage ?? [];
  return (
    <Stack>
      <div className="max-w-48"><SelectField label="Period" hideLabel value={days} options={RANGES} onChange={(value) => setParams({ days: value }, { replace: true })} /></div>
      {usage.isError ? <Failure error={usage.error} retry={() => void usage.refetch()} /> : null}
      <Section title="Active users" description={usage.data?.report && usage.data.report.active_users > 0 ? `${counted(usage.data.report.active_users, "person", "different people")} in this period.` : null}>
        {times.length > 0 ? <Suspense fallback={<Skeleton className="h-56" />}><Chart label="Active users" times={times} series={series} nothing="Nobody has used it in this period." /></Suspense> : usage.isPending ? <Skeleton className="h-56" /> : <p className="text-muted">Nobody has used it in this period.</p>}
      </Section>
      <div className="grid grid-cols-2 gap-4 max-lg:grid-cols-1">
        <Section title="Latency by user" description="The median, from the person to the workspace.">
          <People rows={(latency.data?.report.users ?? []).map((user) => ({ id: user.user_id, name: user.username, picture: user.avatar_url, value: `${Math.round(user.latency_ms.p50)} ms` }))} />
        </Section>
        <Section title="Activity by user">
          <People rows={[...(activity.data?.report.users ?? [])].sort((a, b) => b.seconds - a.seconds).map((user) => ({ id: user.user_id, name: user.username, picture: user.avatar_url, value: duration(user.seconds * 1000) }))} />
        </Section>
        <Section title="Applications"><People square rows={apps.map((app) => ({ id: app.slug, name: app.display_name, picture: app.icon, value: duration(app.seconds * 1000) }))} /></Section>
        <Section title="Parameters">
          {parameters.length === 0 ? <p className="text-muted">No parameters were chosen in this period.</p> : (
            <Stack>{parameters.map((parameter) => (
              <div key={parameter.name}>
                <h3 className="font-medium">{parameter.display_name || parameter.name}</h3>
                <ul>{[...parameter.values].sort((a, b) => b.count - a.count).slice(0, 5).map((item) => <li key={item.value} className="flex justify-between gap-4 text-sm"><span className="truncate">{item.value || "(empty)"}</span><span className="text-muted tabular-nums">{item.count}</span></li>)}</ul>
              </div>
            ))}</Stack>
          )}
        </Section>
      </div>
    </Stack>
  );
}

function People({ rows, square = false }: { rows: readonly { id: string; name: string; picture?: string | undefined; value: string }[]; square?: boolean }) {
  if (rows.length === 0) return <p className="text-muted">Nothing in this period.</p>;
  return <ul className="flex flex-col gap-2">{rows.slice(0, 10).map((row) => <li key={row.id} className="flex items-center gap-3"><Avatar name={row.name} src={row.picture} size="sm" square={square} /><span className="min-w-0 flex-1 truncate">{row.name}</span><span className="text-muted tabular-nums">{row.value}</span></li>)}</ul>;
}
