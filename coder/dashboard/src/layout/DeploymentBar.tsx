// The deployment at a glance, along the foot of every page for those who run it: workspaces by state, what goes through
// their connections, who is connected by what, how fresh the figures are. Loaded after the page itself.
import { useQuery } from "@tanstack/react-query";
import { ArrowDown, ArrowUp, Gauge, RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { deploymentStats } from "../api/queries/deployment";
import { healthReport } from "../api/queries/health";
import { usePermissions } from "../api/permissions";
import { Ago } from "../ui/Ago";
import { Dot, type Tone } from "../ui/Badge";
import { IconButton } from "../ui/Button";
import { byteSize } from "../ui/bytes";

const STATES = [
  ["pending", "Pending", "busy", "status:pending"], ["building", "Building", "busy", "status:starting"], ["running", "Running", "good", "status:running"],
  ["stopped", "Stopped", "idle", "status:stopped"], ["failed", "Failed", "bad", "status:failed"],
] as const satisfies readonly (readonly [string, string, Tone, string])[];
const SESSIONS = [["vscode", "VS Code"], ["jetbrains", "JetBrains"], ["ssh", "SSH"], ["reconnecting_pty", "Terminal"]] as const;

export function DeploymentBar() {
  const may = usePermissions();
  const answer = useQuery({ ...deploymentStats, enabled: may.viewDeploymentStats });
  const ill = useQuery({ ...healthReport, enabled: may.viewDebugInfo }).data?.healthy === false;
  const stats = answer.data;
  if (!stats) return null;
  const latency = stats.workspaces.connection_latency_ms.P50;
  return (
    <aside aria-label="Deployment statistics" className="z-20 border-t border-line bg-surface text-xs text-muted lg:sticky lg:bottom-0">
      <div className="mx-auto flex w-full max-w-[88rem] flex-wrap items-center gap-x-5 gap-y-1 px-4 py-1.5 sm:px-6">
        {ill ? <Link to="/health" className="flex items-center gap-1.5 font-medium text-bad hover:underline"><Dot tone="bad" />Not healthy</Link> : null}
        <Figures name="Workspaces">
          {STATES.map(([key, text, tone, filter]) => (
            <li key={key}>
              <Link className="flex items-center gap-1 hover:underline" title={text} aria-label={`${text}: ${stats.workspaces[key]}`} to={`/workspaces?filter=${encodeURIComponent(filter)}`}><Dot tone={tone} />{stats.workspaces[key]}</Link>
            </li>
          ))}
        </Figures>
        <Figures name="Transmission">
          <Figure name="Received" icon={<ArrowDown />} value={byteSize(stats.workspaces.rx_bytes)} />
          <Figure name="Sent" icon={<ArrowUp />} value={byteSize(stats.workspaces.tx_bytes)} />
          <Figure name="Latency" icon={<Gauge />} value={latency < 0 ? "–" : `${Math.round(latency)} ms`} />
        </Figures>
        <Figures name="Connections">{SESSIONS.map(([key, text]) => <li key={key}>{`${text} ${stats.session_count[key]}`}</li>)}</Figures>
        <span className="ml-auto flex items-center gap-1 max-sm:ml-0">
          <span>Last aggregated <Ago at={stats.collected_at} /></span>
          <IconButton size="sm" label="Refresh the statistics" busy={answer.isFetching} onClick={() => void answer.refetch()}><RefreshCw /></IconButton>
        </span>
      </div>
    </aside>
  );
}

function Figures({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center gap-x-3">
      <span className="font-medium" aria-hidden="true">{name}</span>
      <ul aria-label={name} className="flex flex-wrap gap-x-3 text-text tabular-nums">{children}</ul>
    </div>
  );
}

function Figure({ name, icon, value }: { name: string; icon: ReactNode; value: string }) {
  return <li title={name} aria-label={`${name}: ${value}`} className="flex items-center gap-1 [&_svg]:size-3 [&_svg]:text-muted">{icon}{value}</li>;
}
