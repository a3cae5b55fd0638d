// What can be done with several workspaces at once. Each is its own request; what fails is said, the rest goes on.
import { useQueryClient } from "@tanstack/react-query";
import { CloudDownload, Play, Square, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import type { WorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { toast } from "../../ui/toast";
import { isActive } from "./status";
import { startBuild, updateToActive } from "../workspace/builds/builds";
import { counted, plural } from "../../ui/words";
import { useListRights } from "./rights";

type Batch = "start" | "stop" | "update" | "delete";

const ACTS: Record<Batch, { doing: string; right: keyof WorkspaceRights & ("start" | "stop" | "remove"); able: (workspace: Workspace) => boolean; act: (workspace: Workspace) => Promise<unknown>; says: string }> = {
  start: { doing: "Start", right: "start", able: (one) => !one.latest_build.has_external_agent && ["stopped", "failed", "canceled"].includes(one.latest_build.status), act: (one) => startBuild(one.id, "start"), says: "They run until they are stopped, by you or by their schedule." },
  stop: { doing: "Stop", right: "stop", able: (one) => !one.latest_build.has_external_agent && one.latest_build.status === "running", act: (one) => startBuild(one.id, "stop"), says: "What runs in them ends. What is on their disks stays." },
  update: { doing: "Update", right: "start", able: (one) => one.outdated && !isActive(one), act: updateToActive, says: "Each is built with the active version of its template, and running ones restart." },
  delete: { doing: "Delete", right: "remove", able: (one) => !isActive(one), act: (one) => startBuild(one.id, "delete"), says: "Everything in them is lost, their disks too. This cannot be undone." },
};

/** What the dialog shows is what is done, however the list moves behind it. */
interface Asked {
  batch: Batch;
  those: readonly Workspace[];
  /** How many of the selected are left as they are. */
  left: number;
}

interface BatchBarProps {
  chosen: readonly Workspace[];
  /** What is still to be chosen: nothing, or those that were refused. */
  onDone: (still: readonly Workspace[]) => void;
}

/** Stays while somebody is asked, although every row that was chosen may have left the list meanwhile. */
export function BatchBar({ chosen, onDone }: BatchBarProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const queries = useQueryClient();
  const rights = useListRights();
  const able = (batch: Batch) => chosen.filter((workspace) => rights(workspace)[ACTS[batch].right] && ACTS[batch].able(workspace));
  const ask = (batch: Batch) => {
    const those = able(batch);
    if (those.length > 0) setAsked({ batch, those, left: chosen.length - those.length });
  };
  const run = async ({ batch, those }: Asked) => {
    const results = await Promise.allSettled(those.map((workspace) => ACTS[batch].act(workspace)));
    const failed = those.filter((_, index) => results[index]?.status === "rejected");
    if (failed.length > 0) toast.failed(`${ACTS[batch].doing} ${failed.map((workspace) => workspace.name).join(", ")}: not done`, results.find((result) => result.status === "rejected")?.reason);
    else toast.done(`${ACTS[batch].doing}: ${counted(results.length, "workspace")} under way.`);
    await queries.invalidateQueries({ queryKey: ["workspaces"] });
    onDone(failed);
  };
  const button = (batch: Batch, icon: ReactNode) => <Button key={batch} size="sm" icon={icon} disabled={able(batch).length === 0} onClick={() => ask(batch)}>{ACTS[batch].doing}…</Button>;
  const act = asked ? ACTS[asked.batch] : null;
  return (
    <>
    {chosen.length > 0 ? <div role="toolbar" aria-label="Selected workspaces" className="mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-accent-soft px-3 py-1.5">
      <span className="mr-auto text-sm font-medium">{chosen.length} selected</span>
      {button("start", <Play />)}{button("stop", <Square />)}{button("update", <CloudDownload />)}{button("delete", <Trash2 />)}
      <Button size="sm" look="quiet" onClick={() => onDone([])}>Clear</Button>
    </div> : null}
      <Confirm open={asked !== null} onClose={() => setAsked(null)} danger={asked?.batch === "delete" || asked?.batch === "stop"} confirm={asked && act ? `${act.doing} ${asked.those.length}` : ""}
        title={asked && act ? `${act.doing} ${counted(asked.those.length, "workspace")}?` : ""} typed={asked?.batch === "delete" ? "delete" : undefined} typedLabel="To be sure" onConfirm={() => (asked ? run(asked) : Promise.resolve())}>
        <p>{act?.says}</p>
        <ul className="max-h-48 list-disc overflow-y-auto pl-5">{asked?.those.map((workspace) => <li key={workspace.id}>{workspace.owner_name}/{workspace.name}</li>)}</ul>
        {asked && asked.left > 0 ? <p>{asked.left} of the selected {plural(asked.left, "is left as it is: this cannot be done with it now, or not by you.", "are left as they are: this cannot be done with them now, or not by you.")}</p> : null}
      </Confirm>
    </>
  );
}
