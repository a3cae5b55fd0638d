// All attached machines in one table. The server keeps their readings for each agent by itself, so each
// row asks for its own.
import { keepPreviousData, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { ClipboardCopy, Plus, RotateCw, Server } from "lucide-react";
import { useState } from "react";

import { get, post, seg } from "../../../api/client";
import { agentHealthIndicators, workspaces } from "../../../api/queries/workspaces";
import type { ExternalAgentCredentials } from "../../../api/types";
import { AGENT_STATUS } from "../../../features/workspace/status";
import { counted, countedAtStart } from "../../../lib/words";
import { Ago } from "../../../ui/Ago";
import { StatusText, type Tone } from "../../../ui/Badge";
import { Button, ButtonLink } from "../../../ui/Button";
import { Confirm } from "../../../ui/Confirm";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { Checkbox } from "../../../ui/forms/Toggle";
import { DataTable, type Column, type Selected } from "../../../ui/lists/DataTable";
import { Pager } from "../../../ui/lists/Pager";
import { useListAddress } from "../../../ui/lists/FilterBar";
import { SkeletonRows } from "../../../ui/Loading";
import { PageHead, TextLink } from "../../../ui/Page";
import { copyOrReport } from "../../../ui/text/clipboard";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { workspacePath } from "../paths";
import { useListRights, RightsOfList } from "../rights";
import {
  attachScript,
  concerns,
  FLEET,
  machineKey,
  machinesOf,
  readingOf,
  wayOf,
  type Machine,
  type Reading,
} from "./fleet";

const SIZE = 50; // each row has a request of its own
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

export function FleetPage() {
  useTitle("Fleet");
  const { page, show } = useListAddress();
  const list = useQuery({ ...workspaces(FLEET, page, SIZE), placeholderData: keepPreviousData });
  const bare = machinesOf(list.data?.workspaces ?? []);
  const lights = useQueries({ queries: bare.map(({ agent }) => agentHealthIndicators(agent.id)) });
  const machines = bare.map((machine, index) => ({
    ...machine,
    lights: lights[index]?.data ?? null,
  }));
  const [attention, setAttention] = useState(false);
  const shown = attention ? machines.filter((machine) => concerns(machine).length > 0) : machines;
  const [selected, setSelected] = useState<Selected>({});
  const attach = (
    <ButtonLink variant="primary" to="/workspaces/attach" icon={<Plus />}>
      Attach a machine
    </ButtonLink>
  );
  return (
    <RightsOfList list={list.data?.workspaces ?? []}>
      <PageHead
        title="Fleet"
        crumbs={[["Workspaces", "/workspaces"], ["Fleet"]]}
        description={
          <span role="status">
            {list.data ? countedAtStart(list.data.count, "attached machine") : "\u00a0"}
          </span>
        }
        actions={attach}
      />
      {list.isLoadingError ? (
        <Failure error={list.error} retry={() => void list.refetch()} />
      ) : list.isPending ? (
        <SkeletonRows />
      ) : (
        <>
          <div className="mb-3 flex min-h-9 flex-wrap items-center justify-between gap-3">
            <Checkbox
              label="Needs attention"
              checked={attention}
              onChange={(on) => {
                setAttention(on);
                setSelected({});
              }}
            />
            <Bulk
              machines={shown.filter((machine) => selected[machineKey(machine)])}
              onDone={() => setSelected({})}
            />
          </div>
          <DataTable
            label="Fleet"
            data={shown}
            columns={COLUMNS}
            rowKey={machineKey}
            total={list.data.count}
            selection={{
              selected,
              onChange: setSelected,
              name: ({ workspace }) => workspace.name,
            }}
            empty={
              <Empty
                icon={Server}
                title={attention ? "No machine needs attention" : "No attached machines yet"}
                actions={attention ? null : attach}
              >
                {attention
                  ? "Unknown readings are not counted."
                  : "Attach any server, virtual machine or pod with one command."}
              </Empty>
            }
          />
          <p className="mt-2 text-sm text-muted">
            “-” and “Unknown” mean that the agent has not reported a reading. Agents do not report
            pending reboots.
          </p>
          <Pager
            page={page}
            stale={list.isPlaceholderData}
            size={SIZE}
            total={list.data.count}
            onChange={(next) => {
              setSelected({});
              show("", next);
            }}
          />
        </>
      )}
    </RightsOfList>
  );
}

const reading = (
  id: string,
  header: string,
  part: "host" | "agent",
  width: string,
): Column<Machine> => ({
  id,
  header,
  extra: true,
  width,
  cell: ({ lights }) => {
    const { text, status } = readingOf(lights, part, id);
    return (
      <StatusText tone={TONES[status]} quiet>
        {text}
      </StatusText>
    );
  },
});

const COLUMNS: readonly Column<Machine>[] = [
  {
    id: "machine",
    header: "Machine",
    width: "19%",
    sort: ({ workspace }) => workspace.name,
    cell: (machine) => (
      <div className="min-w-0 [overflow-wrap:anywhere]">
        <TextLink to={workspacePath(machine.workspace)} className="text-text">
          {machine.workspace.name}
        </TextLink>
        <p className="text-sm text-muted">
          {machine.workspace.owner_name}
          {concerns(machine).length > 0 ? (
            <span className="text-warn"> · {concerns(machine).join(", ")}</span>
          ) : null}
        </p>
      </div>
    ),
  },
  {
    id: "status",
    header: "Status",
    width: "15%",
    sort: ({ agent }) => agent.status,
    cell: ({ agent }) => {
      const [word, tone] = AGENT_STATUS[agent.status];
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
    width: "11%",
    sort: ({ agent }) => agent.operating_system,
    cell: ({ agent }) =>
      agent.operating_system ? `${agent.operating_system} ${agent.architecture}` : "Unknown",
  },
  {
    id: "version",
    header: "Version",
    extra: true,
    width: "11%",
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
    width: "11%",
    cell: ({ lights }) => {
      const [tone, word] = WAYS[wayOf(lights)];
      return (
        <StatusText tone={tone} quiet>
          {word}
        </StatusText>
      );
    },
  },
  reading("disk", "Disk", "host", "10%"),
  reading("memory", "Memory", "host", "10%"),
  reading("clock", "Clock", "host", "7%"),
  reading("reboot", "Rebooted", "host", "10%"),
];

/** The selection's actions: a bar of fixed height, so that nothing below it moves. */
function Bulk({ machines, onDone }: { machines: readonly Machine[]; onDone: () => void }) {
  const queries = useQueryClient();
  const rights = useListRights();
  const [rotating, setRotating] = useState(false);
  const [busy, setBusy] = useState(false);
  const own = machines.filter(({ workspace }) => rights(workspace).update);
  if (machines.length === 0) return null;
  const path = ({ workspace, agent }: Machine) =>
    `/api/v2/workspaces/${workspace.id}/external-agent/${seg(agent.name)}`;
  const commandsOf = async (load: (machine: Machine) => Promise<ExternalAgentCredentials>) => {
    const commands: (readonly [string, string])[] = [];
    for (const machine of own)
      commands.push([machine.workspace.name, (await load(machine)).command]);
    return attachScript(commands);
  };
  const copy = async () => {
    setBusy(true);
    try {
      const script = await commandsOf((machine) =>
        get<ExternalAgentCredentials>(`${path(machine)}/credentials`),
      );
      if (await copyOrReport(script))
        toast.done(`Copied the attach commands of ${counted(own.length, "machine")}.`);
    } catch (error) {
      toast.failed("Failed to load the attach commands", error);
    } finally {
      setBusy(false);
    }
  };
  const rotate = async () => {
    const script = await commandsOf((machine) =>
      post<ExternalAgentCredentials>(`${path(machine)}/rotate-token`),
    );
    await copyOrReport(script);
    toast.done(
      `Tokens of ${counted(own.length, "machine")} rotated successfully.`,
      "Run the copied commands on the machines. The old tokens are then revoked.",
    );
    await queries.invalidateQueries({ queryKey: ["workspaces"] });
    onDone();
  };
  return (
    <div role="group" aria-label="Selected machines" className="flex flex-wrap items-center gap-2">
      <span className="text-sm text-muted">{machines.length} selected</span>
      <Button
        size="sm"
        icon={<ClipboardCopy />}
        busy={busy}
        disabled={own.length === 0}
        onClick={() => void copy()}
      >
        Copy attach commands
      </Button>
      <Button
        size="sm"
        icon={<RotateCw />}
        disabled={own.length === 0}
        onClick={() => setRotating(true)}
      >
        Rotate tokens…
      </Button>
      <Confirm
        open={rotating}
        onClose={() => setRotating(false)}
        title={`Rotate the tokens of ${counted(own.length, "machine")}?`}
        confirm="Rotate tokens"
        danger={false}
        onConfirm={rotate}
      >
        <p>
          {own.map(({ workspace }) => workspace.name).join(", ")} stay connected: each old token
          works until the new one is first used. The new commands are copied to the clipboard.
        </p>
        {own.length < machines.length ? (
          <p>{machines.length - own.length} of the selected you may not change: left out.</p>
        ) : null}
      </Confirm>
    </div>
  );
}
