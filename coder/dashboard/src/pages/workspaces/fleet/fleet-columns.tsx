// The columns of the fleet's table.
import { agentState } from "../../../features/workspace/status";
import { Ago } from "../../../ui/Ago";
import { StatusText, type Tone } from "../../../ui/Badge";
import type { Column } from "../../../ui/lists/DataTable";
import { TextLink } from "../../../ui/Page";
import { workspacePath } from "../paths";
import { concerns, readingOf, wayOf, type Machine, type Reading } from "./fleet";

const TONES: Readonly<Record<Reading["status"], Tone>> = {
  good: "good",
  warning: "warn",
  bad: "bad",
  unknown: "idle",
};
const WAYS = {
  direct: ["good", "Direct"],
  relayed: ["warn", "Relayed"],
  idle: ["idle", "No peers"],
  unknown: ["idle", "Unknown"],
} as const;

const PENDING: Readonly<Record<string, string>> = { yes: "reboot pending", no: "none pending" };

/** The cell of a reading; the element says unknown if there is none. */
const reading = (part: "host" | "agent", name: string) =>
  function ReadingCell({ lights }: Machine) {
    const { text, status } = readingOf(lights, part, name);
    return (
      <StatusText tone={TONES[status]} quiet>
        {text}
      </StatusText>
    );
  };

export const COLUMNS: readonly Column<Machine>[] = [
  {
    id: "machine",
    header: "Machine",
    width: "16%",
    sort: ({ workspace }) => workspace.name,
    cell: (machine) => (
      <div className="min-w-0 [overflow-wrap:anywhere]">
        <TextLink to={workspacePath(machine.workspace)} className="text-text">
          {machine.workspace.name}
        </TextLink>
        <p className="text-sm text-muted">
          {machine.workspace.owner_name}
          {concerns(machine).length > 0 ? (
            <span className="text-warn">&nbsp;· {concerns(machine).join(", ")}</span>
          ) : null}
        </p>
      </div>
    ),
  },
  {
    id: "status",
    header: "Status",
    width: "12%",
    sort: ({ agent }) => agent.status,
    cell: ({ agent }) => {
      const [word, tone] = agentState(agent, true);
      return (
        <>
          <StatusText tone={tone}>{word}</StatusText>
          <p className="text-sm text-muted">
            {agent.last_connected_at ? (
              <>
                seen <Ago at={agent.last_connected_at} />
              </>
            ) : (
              "never seen"
            )}
          </p>
        </>
      );
    },
  },
  {
    id: "system",
    header: "System",
    extra: true,
    width: "10%",
    sort: ({ agent }) => agent.operating_system,
    cell: ({ agent }) =>
      agent.operating_system ? `${agent.operating_system} ${agent.architecture}` : "Unknown",
  },
  {
    id: "version",
    header: "Version",
    extra: true,
    width: "9%",
    sort: ({ agent }) => agent.version,
    cell: ({ agent, lights }) => (
      <StatusText tone={TONES[readingOf(lights, "agent", "version").status]} quiet>
        <span className="[overflow-wrap:anywhere]">{agent.version || "-"}</span>
      </StatusText>
    ),
  },
  {
    id: "way",
    header: "Connection",
    extra: true,
    width: "10%",
    cell: ({ lights }) => {
      const [tone, word] = WAYS[wayOf(lights)];
      return (
        <StatusText tone={tone} quiet>
          {word}
        </StatusText>
      );
    },
  },
  { id: "disk", header: "Disk", extra: true, width: "12%", cell: reading("host", "disk") },
  { id: "memory", header: "Memory", extra: true, width: "11%", cell: reading("host", "memory") },
  { id: "clock", header: "Clock", extra: true, width: "8%", cell: reading("host", "clock") },
  {
    id: "reboot",
    header: "Rebooted",
    extra: true,
    width: "12%",
    cell: ({ lights }) => {
      const booted = readingOf(lights, "host", "reboot");
      const pending = readingOf(lights, "host", "pending reboot");
      return (
        <>
          <StatusText tone={TONES[booted.status]} quiet>
            {booted.text}
          </StatusText>
          {booted.status === "unknown" && pending.status === "unknown" ? null : (
            <p
              className={pending.status === "warning" ? "text-sm text-warn" : "text-sm text-muted"}
            >
              {PENDING[pending.text] ?? "pending: unknown"}
            </p>
          )}
        </>
      );
    },
  },
];
