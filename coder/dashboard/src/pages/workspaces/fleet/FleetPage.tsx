// All attached machines in one table. The server keeps their readings for each agent by itself, so each
// row asks for its own.
import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { Plus, Server } from "lucide-react";
import { useState } from "react";

import { agentHealthIndicators, workspaces } from "../../../api/queries/workspaces";
import { countedAtStart } from "../../../lib/words";
import { ButtonLink } from "../../../ui/Button";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { Checkbox } from "../../../ui/forms/Toggle";
import { DataTable, type Selected } from "../../../ui/lists/DataTable";
import { Pager } from "../../../ui/lists/Pager";
import { useListAddress } from "../../../ui/lists/FilterBar";
import { SkeletonRows } from "../../../ui/Loading";
import { PageHead } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { RightsOfList } from "../rights";
import { Bulk } from "./Bulk";
import { concerns, FLEET, machineKey, machinesOf } from "./fleet";
import { COLUMNS } from "./fleet-columns";

const SIZE = 50; // each row has a request of its own
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
