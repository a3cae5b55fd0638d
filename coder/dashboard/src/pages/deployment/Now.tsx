// Figures of the deployment now: workspaces by state, sessions by kind, latency.
import type { ReactNode } from "react";
import { Link } from "react-router";

import { UNATTACHED } from "../../api/queries/workspaces";
import type { DeploymentStats } from "../../api/types";
import { useRunning } from "../../features/workspace/running";
import { Section } from "../../ui/Card";
import { cx } from "../../ui/cx";
import { Skeleton } from "../../ui/Loading";

const STATES = [
  ["running", "Running", "status:running"],
  ["building", "Building", "status:starting"],
  ["pending", "Pending", "status:pending"],
  ["stopped", "Stopped", "status:stopped"],
  ["failed", "Failed", "status:failed"],
] as const;
const SESSIONS = [
  ["ssh", "SSH"],
  ["vscode", "VS Code"],
  ["jetbrains", "JetBrains"],
  ["reconnecting_pty", "Terminals"],
] as const;

/** `unknown`: what stands for a figure that cannot be loaded; undefined while it loads. */
export function Now({
  stats,
  unknown,
}: {
  stats: DeploymentStats | undefined;
  unknown: string | undefined;
}) {
  const running = useRunning(stats?.workspaces.running);
  const columns = cx(
    "grid gap-4 max-lg:grid-cols-3 max-sm:grid-cols-2",
    running.apart ? "grid-cols-6" : "grid-cols-5",
  );
  const uncounted = running.pending ? unknown : "-";
  return (
    <Section title="Now">
      <dl className={columns}>
        {STATES.map(([key, text, filter]) => (
          <Figure
            key={key}
            name={key === "running" ? running.label : text}
            to={`/workspaces?filter=${encodeURIComponent(filter)}`}
            value={
              key === "running"
                ? (running.count ?? (stats ? uncounted : unknown))
                : (stats?.workspaces[key] ?? unknown)
            }
          />
        ))}
        {running.apart ? (
          <Figure
            name="Not attached"
            to={`/workspaces?filter=${encodeURIComponent(UNATTACHED)}`}
            value={running.unattached ?? uncounted}
          />
        ) : null}
      </dl>
      <dl className={cx("mt-5 border-t border-line pt-4", columns)}>
        {SESSIONS.map(([key, text]) => (
          <Figure key={key} name={`${text} open`} value={stats?.session_count[key] ?? unknown} />
        ))}
        <Figure
          name="Median latency"
          value={
            stats
              ? stats.workspaces.connection_latency_ms.P50 < 0
                ? "-"
                : `${Math.round(stats.workspaces.connection_latency_ms.P50)} ms`
              : unknown
          }
        />
      </dl>
    </Section>
  );
}

function Figure({ name, value, to }: { name: string; value: ReactNode; to?: string }) {
  return (
    <div>
      <dt className="text-sm text-muted">{name}</dt>
      <dd className="text-2xl font-semibold tabular-nums">
        {value === undefined ? (
          <Skeleton className="mt-1 h-6 w-10" />
        ) : to ? (
          <Link to={to} className="hover:underline">
            {value}
          </Link>
        ) : (
          value
        )}
      </dd>
    </div>
  );
}
