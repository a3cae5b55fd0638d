// Actions on the selected machines of the fleet.
import { useQueryClient } from "@tanstack/react-query";
import { CircleArrowUp, ClipboardCopy, RotateCw } from "lucide-react";
import { useState } from "react";

import { get, post, seg } from "../../../api/client";
import type { ExternalAgentCredentials } from "../../../api/types";
import { counted } from "../../../lib/words";
import { Button } from "../../../ui/Button";
import { Confirm } from "../../../ui/Confirm";
import { copyText } from "../../../ui/text/clipboard";
import { toast } from "../../../ui/toast";
import { useListRights } from "../rights";
import { Commands } from "./Commands";
import { attachScript, loadCommands, type Loaded, type Machine } from "./fleet";
import { UpgradeDialog } from "./UpgradeDialog";

/** The selection's actions: a bar of fixed height, so that nothing below it moves. */
export function Bulk({ machines, onDone }: { machines: readonly Machine[]; onDone: () => void }) {
  const queries = useQueryClient();
  const rights = useListRights();
  const [rotating, setRotating] = useState(false);
  const [upgrading, setUpgrading] = useState<readonly Machine[] | null>(null);
  const [busy, setBusy] = useState(false);
  const own = machines.filter(({ workspace }) => rights(workspace).update);
  const [shown, setShown] = useState<{ title: string; loaded: Loaded } | null>(null);
  const path = ({ workspace, agent }: Machine) =>
    `/api/v2/workspaces/${workspace.id}/external-agent/${seg(agent.name)}`;
  const copy = async () => {
    setBusy(true);
    const loaded = await loadCommands(own, (machine) =>
      get<ExternalAgentCredentials>(`${path(machine)}/credentials`),
    );
    setBusy(false);
    if (loaded.failed.length === 0 && (await copyText(attachScript(loaded.commands))))
      toast.done(`Copied the attach commands of ${counted(own.length, "machine")}.`);
    else setShown({ title: "Attach commands", loaded });
  };
  const rotate = async () => {
    const loaded = await loadCommands(own, (machine) =>
      post<ExternalAgentCredentials>(`${path(machine)}/rotate-token`),
    );
    setShown({ title: "New attach commands", loaded });
    void queries.invalidateQueries({ queryKey: ["workspaces"] });
  };
  // The dialogs are not in the bar: a machine may leave the list while its new command is shown.
  return (
    <>
      {machines.length > 0 ? (
        <div
          role="group"
          aria-label="Selected machines"
          className="flex flex-wrap items-center gap-2"
        >
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
          <Button
            size="sm"
            icon={<CircleArrowUp />}
            disabled={own.length === 0}
            onClick={() => setUpgrading(own)}
          >
            Upgrade agents…
          </Button>
        </div>
      ) : null}
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
          works until the new one is first used. The new commands are shown afterwards.
        </p>
        {own.length < machines.length ? (
          <p>{machines.length - own.length} of the selected you may not change: left out.</p>
        ) : null}
      </Confirm>
      {upgrading ? (
        <UpgradeDialog
          machines={upgrading}
          onClose={() => {
            setUpgrading(null);
            void queries.invalidateQueries({ queryKey: ["workspaces"] });
          }}
        />
      ) : null}
      {shown ? (
        <Commands
          {...shown}
          onClose={() => {
            setShown(null);
            onDone();
          }}
        />
      ) : null}
    </>
  );
}
