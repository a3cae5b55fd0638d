// Health of an agent's machine: three indicators, each with its readings and their ages, and the
// reason for the last disconnect.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactNode } from "react";

import { useLongLost } from "../../../api/connection";
import { agentDisconnects, agentHealthIndicators } from "../../../api/queries/workspaces";
import type { AgentDisconnect, AgentLight, LightValue, WorkspaceAgent } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { StatusText, type Tone } from "../../../ui/Badge";
import { duration } from "../../../lib/time";
import { Hint } from "../../../ui/Hint";

type IndicatorState = AgentLight["status"];

/** An unknown state is grey and labelled: it is never shown as healthy. */
export const STATES: Readonly<Record<IndicatorState, readonly [word: string, tone: Tone]>> = {
  good: ["Healthy", "good"],
  warning: ["Warning", "warn"],
  bad: ["Critical", "bad"],
  unknown: ["Unknown", "idle"],
};

const INDICATORS = [
  ["host", "Host", "Operating system and hardware"],
  ["agent", "Agent", "Agent process"],
  ["path", "Path", "Network path to the agent"],
] as const;

/** Names of readings that the API calls otherwise. */
const LABELS: Readonly<Record<string, string>> = { reboot: "last boot", way: "clients" };

/** Nothing if the server has no health indicators for the agent. */
export function AgentHealth({
  agent,
  pathLink = null,
}: {
  agent: WorkspaceAgent;
  /** Leads to more about the network path. */
  pathLink?: ReactNode;
}) {
  const { data: healthIndicators, dataUpdatedAt } = useQuery(agentHealthIndicators(agent.id));
  const lost = useLongLost();
  const [, tick] = useState(0);
  useEffect(() => {
    if (!lost) return;
    const timer = window.setInterval(() => tick((count) => count + 1), 1000);
    return () => window.clearInterval(timer);
  }, [lost]);
  if (!healthIndicators) return null;
  const elapsed = lost ? Math.max(0, Date.now() - dataUpdatedAt) / 1000 : null;
  return (
    <section
      aria-label={`Health of ${agent.name}`}
      className="grid grid-cols-3 gap-3 max-lg:grid-cols-1"
    >
      {INDICATORS.map(([key, title, hint]) => (
        <HealthIndicator
          key={key}
          title={title}
          hint={hint}
          indicator={healthIndicators[key]}
          elapsed={elapsed}
          link={key === "path" ? pathLink : null}
        />
      ))}
    </section>
  );
}

function HealthIndicator({
  title,
  hint,
  indicator,
  elapsed,
  link,
}: {
  title: string;
  hint: string;
  indicator: AgentLight;
  /** Seconds since the readings arrived while the connection is lost; null otherwise. */
  elapsed: number | null;
  link: ReactNode;
}) {
  const [label, tone] = STATES[indicator.status];
  const word =
    indicator.status === "unknown" && indicator.values.every(isPending)
      ? "Waiting for data"
      : label;
  const oldest = oldestFresh(indicator.values);
  return (
    <div role="group" aria-label={title} className="rounded-lg border border-line px-3.5 py-2.5">
      <p className="flex items-baseline justify-between gap-2">
        <strong className="font-semibold">
          <Hint text={hint}>{title}</Hint>
        </strong>
        <StatusText tone={tone}>{word}</StatusText>
      </p>
      <dl className="mt-1.5 flex flex-col gap-1 text-sm">
        {indicator.values.map((value) => (
          <Value key={value.name} value={value} age={isFresh(value) ? "" : ageOf(value, elapsed)} />
        ))}
      </dl>
      {oldest || link ? (
        <p className="mt-1 flex justify-between gap-2 text-sm text-muted tabular-nums">
          <span>{link}</span>
          {oldest ? ageOf(oldest, elapsed) : null}
        </p>
      ) : null}
    </div>
  );
}

/** Older readings are outdated: they show their own age. */
const FRESH_S = 90;
const isFresh = ({ age_seconds }: LightValue): boolean =>
  age_seconds !== null && age_seconds < FRESH_S;

/** The oldest of the fresh readings, whose age is shown once; null if there are none. */
export function oldestFresh(values: readonly LightValue[]): LightValue | null {
  const fresh = values.filter(isFresh);
  const age = Math.max(...fresh.map((value) => value.age_seconds ?? 0));
  return fresh.find((value) => value.age_seconds === age) ?? null;
}

function Value({ value, age }: { value: LightValue; age: string }) {
  const [word, tone] = STATES[value.status];
  return (
    <div className="flex items-baseline gap-x-2">
      <dt className="w-28 shrink-0 text-muted first-letter:uppercase">
        {LABELS[value.name] ?? value.name}
      </dt>
      <dd className="flex min-w-0 flex-1 items-baseline gap-x-2">
        <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2">
          {value.value ? (
            <span className="[overflow-wrap:anywhere]">{value.value}</span>
          ) : (
            <span className="text-muted tabular-nums">{age}</span>
          )}
          {value.status === "good" || isPending(value) ? null : (
            <StatusText tone={tone}>{word}</StatusText>
          )}
        </span>
        {/* Of constant width: the text changes every few seconds, and nothing below may move with
           it. */}
        {age && value.value ? (
          <span className="min-w-18 shrink-0 text-right text-muted tabular-nums">{age}</span>
        ) : null}
      </dd>
    </div>
  );
}

/** An agent that has just connected: no reading is missing yet. */
const isPending = ({ status, age_seconds }: Pick<LightValue, "status" | "age_seconds">): boolean =>
  status === "unknown" && age_seconds === null;

/** The server computes the age: clocks of browsers are not reliable. */
export function ageOf(
  { age_seconds }: Pick<LightValue, "age_seconds">,
  elapsed: number | null = null,
): string {
  if (age_seconds === null) return "no data yet";
  const age = age_seconds + (elapsed ?? 0);
  if (age < 5 && elapsed === null) return "now";
  return age < 60 ? `${Math.floor(age)}s ago` : `${duration(age * 1000)} ago`; // tenths of a second are outdated when displayed
}

/** The server's explanation, as long as it is current enough to help. */
const SHOWN_MS = 7 * 86_400_000;

/**
 * The reason for the last disconnect, in a sentence; nothing if there was none, or it was long ago.
 */
export function LastDisconnect({ agent }: { agent: WorkspaceAgent }) {
  const last = useQuery(agentDisconnects(agent.id)).data?.[0];
  if (!last || Date.now() - Date.parse(last.disconnected_at) > SHOWN_MS) return null;
  return (
    <p className="text-sm text-muted">
      <Absence last={last} /> <Cause last={last} />
    </p>
  );
}

function Absence({ last }: { last: AgentDisconnect }) {
  if (last.returned_at === null)
    return (
      <>
        Disconnected <Ago at={last.disconnected_at} />.
      </>
    );
  return (
    <>
      Last disconnected <Ago at={last.disconnected_at} />, for{" "}
      {duration(Date.parse(last.returned_at) - Date.parse(last.disconnected_at))}.
    </>
  );
}

function Cause({ last }: { last: AgentDisconnect }) {
  return <span className="text-text">{last.detail || "The reason is unknown."}</span>;
}
