// The deployment at a glance, in the footer for administrators: workspaces by state, traffic,
// sessions by kind, and the age of the figures. Loaded after the page itself.
import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { deploymentStats } from "../../api/queries/deployment";
import { UNATTACHED } from "../../api/queries/workspaces";
import { healthReport } from "../../api/queries/health";
import { usePermissions } from "../../api/permissions";
import { Ago } from "../../ui/Ago";
import { StatusText, type Tone } from "../../ui/Badge";
import { IconButton } from "../../ui/Button";
import { useRunning } from "../../features/workspace/running";
import { byteSize } from "../../lib/bytes";

const STATES = [
  ["pending", "Pending", "busy", "status:pending"],
  ["building", "Building", "busy", "status:starting"],
  ["running", "Running", "good", "status:running"],
  ["stopped", "Stopped", "idle", "status:stopped"],
  ["failed", "Failed", "bad", "status:failed"],
] as const satisfies readonly (readonly [string, string, Tone, string])[];
/** Shown even when 0; the other states only when there are some, to keep the footer on one line. */
const ALWAYS: readonly string[] = ["running", "stopped"];
const SESSIONS = [
  ["vscode", "VS Code"],
  ["jetbrains", "JetBrains"],
  ["ssh", "SSH"],
  ["reconnecting_pty", "Terminal"],
] as const;

export function DeploymentBar() {
  const may = usePermissions();
  const answer = useQuery({ ...deploymentStats, enabled: may.viewDeploymentStats });
  const unhealthy =
    useQuery({ ...healthReport, enabled: may.viewDebugInfo }).data?.healthy === false;
  const stats = answer.data;
  const running = useRunning(stats?.workspaces.running);
  // All at once: a figure that came later would move those beside it.
  if (!stats || running.pending) return null;
  const sessions = SESSIONS.filter(([key]) => stats.session_count[key] > 0);
  const latency = stats.workspaces.connection_latency_ms.P50;
  return (
    <aside
      aria-label="Deployment statistics"
      className="z-20 border-t border-line bg-surface text-xs text-muted"
    >
      <div className="mx-auto flex w-full max-w-(--page) items-center gap-x-4 gap-y-1 px-4 py-1.5 max-sm:flex-wrap sm:px-6">
        <div className="flex min-w-0 flex-1 flex-wrap gap-x-4 gap-y-1 max-sm:basis-full">
          <Figures name="Workspaces">
            {STATES.filter(([key]) => ALWAYS.includes(key) || stats.workspaces[key] > 0).map(
              ([key, text, tone, filter]) => (
                <li key={key}>
                  <Link
                    className="hover:underline"
                    to={`/workspaces?filter=${encodeURIComponent(filter)}`}
                  >
                    <StatusText tone={tone} quiet>
                      {key === "running"
                        ? `${running.label}: ${running.count ?? "-"}`
                        : `${text}: ${stats.workspaces[key]}`}
                    </StatusText>
                  </Link>
                </li>
              ),
            )}
            {running.unattached ? (
              <li>
                <Link
                  className="hover:underline"
                  to={`/workspaces?filter=${encodeURIComponent(UNATTACHED)}`}
                >
                  <StatusText tone="idle" quiet>
                    Not attached: {running.unattached}
                  </StatusText>
                </Link>
              </li>
            ) : null}
          </Figures>
          <Figures name="Transmission">
            <li>Received: {byteSize(stats.workspaces.rx_bytes)}</li>
            <li>Sent: {byteSize(stats.workspaces.tx_bytes)}</li>
            <li>Median latency: {latency < 0 ? "-" : `${Math.round(latency)} ms`}</li>
          </Figures>
          <Figures name="Connections">
            {sessions.length === 0 ? (
              <li>none</li>
            ) : (
              sessions.map(([key, text]) => (
                <li key={key}>
                  {text}: {stats.session_count[key]}
                </li>
              ))
            )}
          </Figures>
        </div>
        <span className="flex items-center gap-2 max-sm:w-full max-sm:justify-between">
          {/* At the end of the free room: the checks take seconds, and nothing moves when they end. */}
          {unhealthy ? (
            <Link to="/health" className="mr-2 hover:underline">
              <StatusText tone="bad">Unhealthy</StatusText>
            </Link>
          ) : null}
          <span>
            Last aggregated <Ago at={stats.collected_at} />
          </span>
          <IconButton
            size="sm"
            label="Refresh statistics"
            busy={answer.isFetching}
            onClick={() => void answer.refetch()}
          >
            <RefreshCw />
          </IconButton>
        </span>
      </div>
    </aside>
  );
}

function Figures({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-baseline gap-x-3 max-sm:grid max-sm:w-full max-sm:grid-cols-[5.5rem_1fr]">
      <span className="font-medium" aria-hidden="true">
        {name}
      </span>
      <ul aria-label={name} className="flex flex-wrap gap-x-3 text-text tabular-nums">
        {children}
      </ul>
    </div>
  );
}
