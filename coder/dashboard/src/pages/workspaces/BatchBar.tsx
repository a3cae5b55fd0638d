// What can be done with several workspaces at once. Each is its own request; what fails is said, the rest goes on.
import { useQueryClient } from "@tanstack/react-query";
import { CloudDownload, Play, Square, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import type { Workspace } from "../../api/types";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { toast } from "../../ui/toast";
import { startBuild, updateToActive } from "../workspace/builds/builds";
import { counted, plural } from "../../ui/words";

type Batch = "start" | "stop" | "update" | "delete";

const ACTS: Record<Batch, { doing: string; able: (workspace: Workspace) => boolean; act: (workspace: Workspace) => Promise<unknown>; says: string }> = {
  start: { doing: "Start", able: (one) => !one.latest_build.has_external_agent && ["stopped", "failed", "canceled"].includes(one.latest_build.status), act: (one) => startBuild(one.id, "start"), says: "They run until they are stopped, by you or by their schedule." },
  stop: { doing: "Stop", able: (one) => !one.latest_build.has_external_agent && one.latest_build.status === "running", act: (one) => startBuild(one.id, "stop"), says: "What runs in them ends. What is on their disks stays." },
  update: { doing: "Update", able: (one) => one.outdated, act: updateToActive, says: "Each is built with the active version of its template, and running ones restart." },
  delete: { doing: "Delete", able: () => true, act: (one) => startBuild(one.id, "delete"), says: "Everything in them is lost, their disks too. This cannot be undone." },
};

export function BatchBar({ chosen, onDone }: { chosen: readonly Workspace[]; onDone: () => void }) {
  const [asked, setAsked] = useState<Batch | null>(null);
  const queries = useQueryClient();
  const able = (batch: Batch) => chosen.filter(ACTS[batch].able);
  const run = async (batch: Batch) => {
    const results = await Promise.allSettled(able(batch).map((workspace) => ACTS[batch].act(workspace)));
    const failed = results.filter((result) => result.status === "rejected");
    if (failed.length > 0) toast.failed(`${failed.length} of ${results.length} could not be done`, failed[0]?.reason);
    else toast.done(`${ACTS[batch].doing}: ${counted(results.length, "workspace")} under way.`);
    await queries.invalidateQueries({ queryKey: ["workspaces"] });
    onDone();
  };
  const button = (batch: Batch, icon: ReactNode) => <Button key={batch} size="sm" icon={icon} disabled={able(batch).length === 0} onClick={() => setAsked(batch)}>{ACTS[batch].doing}…</Button>;
  const those = asked ? able(asked) : [];
  return (
    <div role="toolbar" aria-label="Selected workspaces" className="mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-accent-soft px-3 py-1.5">
      <span className="mr-auto text-sm font-medium">{chosen.length} selected</span>
      {button("start", <Play />)}{button("stop", <Square />)}{button("update", <CloudDownload />)}{button("delete", <Trash2 />)}
      <Button size="sm" look="quiet" onClick={onDone}>Clear</Button>
      <Confirm open={asked !== null} onClose={() => setAsked(null)} danger={asked === "delete" || asked === "stop"} confirm={asked ? `${ACTS[asked].doing} ${those.length}` : ""}
        title={asked ? `${ACTS[asked].doing} ${counted(those.length, "workspace")}?` : ""} typed={asked === "delete" ? "delete" : undefined} typedLabel="To be sure" onConfirm={() => (asked ? run(asked) : Promise.resolve())}>
        <p>{asked ? ACTS[asked].says : ""}</p>
        <ul className="max-h-48 list-disc overflow-y-auto pl-5">{those.map((workspace) => <li key={workspace.id}>{workspace.owner_name}/{workspace.name}</li>)}</ul>
        {asked && those.length < chosen.length ? <p>{chosen.length - those.length} of the selected {plural(chosen.length - those.length, "is left as it is: this cannot be done with it now.", "are left as they are: this cannot be done with them now.")}</p> : null}
      </Confirm>
    </div>
  );
}
