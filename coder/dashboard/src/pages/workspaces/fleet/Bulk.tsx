// Actions on the selected machines of the fleet.
import { useQueryClient } from "@tanstack/react-query";
import { ClipboardCopy, RotateCw } from "lucide-react";
import { useState } from "react";

import { get, post, seg } from "../../../api/client";
import type { ExternalAgentCredentials } from "../../../api/types";
import { counted } from "../../../lib/words";
import { Button } from "../../../ui/Button";
import { Confirm } from "../../../ui/Confirm";
import { copyOrReport } from "../../../ui/text/clipboard";
import { toast } from "../../../ui/toast";
import { useListRights } from "../rights";
import { attachScript, type Machine } from "./fleet";

/** The selection's actions: a bar of fixed height, so that nothing below it moves. */
export function Bulk({ machines, onDone }: { machines: readonly Machine[]; onDone: () => void }) {
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
