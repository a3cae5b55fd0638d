// The connection log: user, workspace, type, address, start and end.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Cable } from "lucide-react";

import { ApiError } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { connectionLog } from "../../api/queries/deployment";
import { organizations } from "../../api/queries/session";
import type { ConnectionLog, ConnectionLogResponse } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { StatusText, Tag, type Tone } from "../../ui/Badge";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { peopleMenu } from "../../features/person/people-menu";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { useListView } from "../../ui/lists/list-view";
import { Pager } from "../../ui/lists/Pager";
import { dateTime, duration } from "../../lib/time";
import { readAll } from "./export";
import { DateRange, ExportMenu } from "./LogTools";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { countedAtStart } from "../../lib/words";

const KINDS: Readonly<Record<ConnectionLog["type"], string>> = {
  ssh: "SSH",
  vscode: "VS Code",
  jetbrains: "JetBrains",
  reconnecting_pty: "Web terminal",
  workspace_app: "App",
  port_forwarding: "Port",
  tunnel: "Tunnel",
};
const PRESETS = [
  ["All connections", ""],
  ["Active", "status:ongoing"],
  ["SSH connections", "type:ssh"],
  ["Apps", "type:workspace_app"],
] as const;

/** The server records who opened a web terminal as a visit to this application. */
const isTerminal = (entry: ConnectionLog): boolean => entry.web_info?.slug_or_port === "terminal";

const COLUMNS: Column<ConnectionLog>[] = [
  {
    id: "what",
    header: "Connection",
    cell: (entry) => (
      <div className="min-w-40">
        {/* The agent does not know the user behind a connection from inside the workspace: the log
           has its type, but no user. */}
        <p>
          {entry.web_info ? (
            <>
              <strong className="font-semibold">
                {entry.web_info.user?.username ?? "An anonymous user"}
              </strong>{" "}
              by {isTerminal(entry) ? KINDS.reconnecting_pty : KINDS[entry.type]}
            </>
          ) : (
            <strong className="font-semibold">{KINDS[entry.type]}</strong>
          )}{" "}
          {entry.web_info?.slug_or_port && !isTerminal(entry) ? (
            <Tag>{entry.web_info.slug_or_port}</Tag>
          ) : null}
        </p>
        <p className="text-sm text-muted [overflow-wrap:anywhere]">
          to <Workspace entry={entry} />
          {entry.agent_name ? `.${entry.agent_name}` : ""}
        </p>
      </div>
    ),
  },
  {
    id: "from",
    header: "From",
    extra: true,
    cell: (row) => <span className="text-muted">{row.ip || "-"}</span>,
  },
  {
    id: "at",
    header: "Started",
    extra: true,
    cell: (row) => (
      <time className="whitespace-nowrap text-muted" dateTime={row.connect_time}>
        {dateTime(row.connect_time)}
      </time>
    ),
  },
  { id: "end", header: "State", cell: (row) => <State entry={row} /> },
];

// A reader of the log may lack access to some of its workspaces.
function Workspace({ entry }: { entry: ConnectionLog }) {
  const may = usePermissions();
  const own = entry.workspace_owner_username === useMe().username;
  const name = `${entry.workspace_owner_username}/${entry.workspace_name}`;
  return may.viewAnyWorkspace || own ? (
    <TextLink to={`/@${name}`}>{name}</TextLink>
  ) : (
    <span className="text-text">{name}</span>
  );
}

/** Two times from one clock, but not always to the second. */
const durationText = (ms: number) => (ms < 1000 ? "within a second" : `after ${duration(ms)}`);

function State({ entry }: { entry: ConnectionLog }) {
  if (entry.web_info) {
    const failed = entry.web_info.status_code >= 400;
    return <Tag tone={failed ? "bad" : "good"}>{entry.web_info.status_code}</Tag>;
  }
  const info = entry.ssh_info;
  if (!info?.disconnect_time)
    return (
      <StatusText tone="good" pulse>
        Connected
      </StatusText>
    );
  const tone: Tone = info.exit_code ? "warn" : "idle";
  return (
    <div>
      <StatusText tone={tone}>
        {info.exit_code ? `Ended with code ${info.exit_code}` : "Ended"}
      </StatusText>
      <p className="text-sm text-muted [overflow-wrap:anywhere]">
        {durationText(Date.parse(info.disconnect_time) - Date.parse(entry.connect_time))}
        {info.disconnect_reason ? `: ${info.disconnect_reason}` : ""}
      </p>
    </div>
  );
}

const EXPORTED = {
  connect_time: (entry: ConnectionLog) => entry.connect_time,
  type: (entry: ConnectionLog) => entry.type,
  user: (entry: ConnectionLog) => entry.web_info?.user?.username ?? "",
  owner: (entry: ConnectionLog) => entry.workspace_owner_username,
  workspace: (entry: ConnectionLog) => entry.workspace_name,
  agent: (entry: ConnectionLog) => entry.agent_name,
  ip: (entry: ConnectionLog) => entry.ip ?? "",
  application: (entry: ConnectionLog) => entry.web_info?.slug_or_port ?? "",
  status: (entry: ConnectionLog) => entry.web_info?.status_code ?? "",
  disconnect_time: (entry: ConnectionLog) => entry.ssh_info?.disconnect_time ?? "",
  disconnect_reason: (entry: ConnectionLog) => entry.ssh_info?.disconnect_reason ?? "",
  exit_code: (entry: ConnectionLog) => entry.ssh_info?.exit_code ?? "",
};

export function ConnectionLogPage() {
  useTitle("Connection Log");
  const may = usePermissions();
  const { filter, page, show } = useListAddress();
  const { size } = useListView();
  const list = useQuery({
    ...connectionLog(filter, page, size),
    enabled: may.viewAnyConnectionLog,
    placeholderData: keepPreviousData,
  });
  const orgs = useQuery(organizations).data ?? [];
  const menus: FilterMenu[] = [
    ...(may.viewUsers ? [peopleMenu("workspace_owner", "Owner")] : []),
    {
      term: "status",
      label: "Status",
      options: [
        { value: "ongoing", text: "Active" },
        { value: "completed", text: "Ended" },
      ],
    },
    {
      term: "type",
      label: "Type",
      options: Object.entries(KINDS).map(([value, text]) => ({ value, text })),
    },
    ...(orgs.length > 1
      ? [
          {
            term: "organization",
            label: "Organization",
            options: orgs.map((organization) => ({
              value: organization.name,
              text: organization.display_name || organization.name,
            })),
          },
        ]
      : []),
  ];
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  if (may.known && !may.viewAnyConnectionLog)
    return <PermissionDenied subject="the connection log" />;
  return (
    <>
      <PageHead
        title="Connection logs"
        description={
          <span role="status">
            {list.data ? countedAtStart(list.data.count, "connection") : " "}
          </span>
        }
        actions={
          <ExportMenu
            name="connection-log"
            read={() =>
              readAll<ConnectionLogResponse, ConnectionLog>(
                "/api/v2/connectionlog",
                filter,
                (page) => page.connection_logs,
              )
            }
            columns={EXPORTED}
          />
        }
      />
      <FilterBar
        label="Search the connection log"
        placeholder="workspace_owner:ana type:ssh connected_after:2026-01-31T00:00:00Z"
        filter={filter}
        onChange={(next) => show(next)}
        presets={PRESETS}
        menus={menus}
        problem={problem}
      >
        <DateRange
          filter={filter}
          terms={["connected_after", "connected_before"]}
          toTerm={(day, isEnd) => `${day}T${isEnd ? "23:59:59" : "00:00:00"}Z`}
          onChange={(next) => show(next)}
        />
      </FilterBar>
      {list.isPending ? <SkeletonRows rows={8} /> : null}
      {list.isError && !problem ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {list.data ? (
        <DataTable
          label="Connections"
          data={list.data.connection_logs}
          columns={COLUMNS}
          rowKey={(entry) => entry.id}
          empty={
            <Empty icon={Cable} title={filter ? "No results" : "No connections yet"}>
              {filter
                ? "Change or clear the search."
                : "Connections to workspaces appear here: SSH, editors, terminals, apps and ports."}
            </Empty>
          }
        />
      ) : null}
      {list.data ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={size}
          adjustable
          total={list.data.count}
          onChange={(next) => show(filter, next)}
        />
      ) : null}
    </>
  );
}
