// All attached machines in one table.
import { Plus, Server } from "lucide-react";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { allMatching, MOST, unique } from "../../../features/workspace/all-matching";
import { countedAtStart } from "../../../lib/words";
import { Button, ButtonLink } from "../../../ui/Button";
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
import { toast } from "../../../ui/toast";
import { RightsOfList } from "../rights";
import { Bulk } from "./Bulk";
import { concerns, FLEET, machineKey, machinesOf, type Machine } from "./fleet";
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
  const [others, setOthers] = useState<readonly Machine[]>([]); // of other pages, after "select all"
  const [busy, setBusy] = useState(false);
  const queries = useQueryClient();
  const known = new Map([...others, ...shown].map((machine) => [machineKey(machine), machine]));
  const chosen = [...known.values()].filter((machine) => selected[machineKey(machine)]);
  const clear = () => {
    setSelected({});
    setOthers([]);
  };
  const selectAll = async () => {
    setBusy(true);
    try {
      const all = await queries.fetchQuery({
        queryKey: ["workspaces", FLEET, "all"],
        queryFn: () => allMatching(FLEET),
      });
      const found = machinesOf(all).map((machine) => ({ ...machine, lights: null }));
      setOthers(found);
      setSelected(Object.fromEntries(found.map((machine) => [machineKey(machine), true as const])));
    } catch (failure) {
      toast.failed("Failed to load all machines", failure);
    } finally {
      setBusy(false);
    }
  };
  const isPageChosen = shown.length > 0 && shown.every((machine) => selected[machineKey(machine)]);
  const attach = (
    <ButtonLink variant="primary" to="/workspaces/attach" icon={<Plus />}>
      Attach a machine
    </ButtonLink>
  );
  return (
    <RightsOfList list={unique([...(workspaces ?? []), ...others.map((item) => item.workspace)])}>
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
            clear();
          }}
        />
        <div className="flex flex-wrap items-center gap-2">
          {!attention && isPageChosen && chosen.length < Math.min(count ?? 0, MOST) ? (
            <Button size="sm" variant="quiet" busy={busy} onClick={() => void selectAll()}>
              {(count ?? 0) <= MOST
                ? `Select all ${count} attached machines`
                : `Select the first ${MOST}`}
            </Button>
          ) : null}
          <Bulk machines={chosen} onDone={clear} />
        </div>
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
          {shown.length > 0 ? (
            <p className="mt-2 text-sm text-muted">
              “-” and “Unknown” mean that no reading is known. Debian, Ubuntu and Windows tell
              whether a reboot is pending.
            </p>
          ) : null}
          {attention ? null : (
            <Pager
              page={page}
              stale={stale}
              size={PAGE}
              total={count ?? 0}
              onChange={(next) => {
                clear();
                show("", next);
              }}
            />
          )}
        </>
      )}
    </RightsOfList>
  );
}
