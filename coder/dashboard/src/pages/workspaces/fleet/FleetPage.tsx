// All attached machines in one table.
import { Plus, Server } from "lucide-react";
import { useState } from "react";

import { MOST } from "../../../features/workspace/all-matching";
import { countedAtStart } from "../../../lib/words";
import { ButtonLink } from "../../../ui/Button";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { Checkbox } from "../../../ui/forms/Toggle";
import { DataTable, type Selected } from "../../../ui/lists/DataTable";
import { Pager } from "../../../ui/lists/Pager";
import { useListAddress } from "../../../ui/lists/FilterBar";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { RightsOfList } from "../rights";
import { Bulk } from "./Bulk";
import { concerns, machineKey } from "./fleet";
import { COLUMNS } from "./fleet-columns";
import { PAGE, useFleet } from "./useFleet";

export function FleetPage() {
  useTitle("Fleet");
  const { page, show } = useListAddress();
  const [attention, setAttention] = useState(false);
  const { workspaces, count, machines, pending, unread, stale, error, retry } = useFleet(
    page,
    attention,
  );
  const shown = attention ? machines.filter((machine) => concerns(machine).length > 0) : machines;
  const [selected, setSelected] = useState<Selected>({});
  const attach = (
    <ButtonLink variant="primary" to="/workspaces/attach" icon={<Plus />}>
      Attach a machine
    </ButtonLink>
  );
  return (
    <RightsOfList list={workspaces ?? []}>
      <PageHead
        title="Fleet"
        crumbs={[["Workspaces", "/workspaces"], ["Fleet"]]}
        description={
          <span role="status">
            {count === undefined ? "\u00a0" : countedAtStart(count, "attached machine")}
          </span>
        }
        actions={attach}
      />
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
      {error ? (
        <Failure error={error} retry={retry} />
      ) : workspaces === undefined || (attention && shown.length === 0 && pending > 0) ? (
        <SkeletonRows />
      ) : (
        <>
          {attention && (unread > 0 || workspaces.length >= MOST) ? (
            <div className="mb-3">
              <Notice kind="info" title="Not every machine is checked">
                {workspaces.length >= MOST ? (
                  <p>Only the first {MOST} attached machines are loaded.</p>
                ) : null}
                {unread > 0 ? (
                  <p>
                    {countedAtStart(unread, "machine")} checked by connection only, without
                    readings.
                  </p>
                ) : null}
              </Notice>
            </div>
          ) : null}
          <DataTable
            label="Fleet"
            data={shown}
            columns={COLUMNS}
            rowKey={machineKey}
            total={attention ? shown.length : (count ?? 0)}
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
                  ? "Unknown readings are no reason for attention."
                  : "Attach any server, virtual machine or pod with one command."}
              </Empty>
            }
          />
          <p className="mt-2 text-sm text-muted">
            “-” and “Unknown” mean that no reading is known. Debian, Ubuntu and Windows tell whether a
            reboot is pending.
          </p>
          {attention ? null : (
            <Pager
              page={page}
              stale={stale}
              size={PAGE}
              total={count ?? 0}
              onChange={(next) => {
                setSelected({});
                show("", next);
              }}
            />
          )}
        </>
      )}
    </RightsOfList>
  );
}
