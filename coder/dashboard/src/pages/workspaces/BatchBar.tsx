// Actions on several workspaces at once. Each is a request of its own; failures are reported and
// the rest continues.
import { useQueryClient } from "@tanstack/react-query";
import { CloudDownload, Play, Square, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import type { WorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { Button, ButtonLink } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Notice } from "../../ui/Notice";
import { toast } from "../../ui/toast";
import { isActive } from "../../features/workspace/status";
import {
  lacksValues,
  startBuild,
  startVersion,
  startWorkspace,
  updateToActive,
} from "./builds/builds";
import { valuesPath } from "./paths";
import { counted, plural } from "../../lib/words";
import { useListRights } from "./rights";

type Batch = "start" | "stop" | "update" | "delete";

const ACTS: Record<
  Batch,
  {
    doing: string;
    right: keyof WorkspaceRights & ("start" | "stop" | "remove");
    able: (workspace: Workspace) => boolean;
    act: (workspace: Workspace) => Promise<unknown>;
    version?: (workspace: Workspace) => string;
    says: string;
  }
> = {
  start: {
    doing: "Start",
    right: "start",
    able: (one) =>
      !one.latest_build.has_external_agent &&
      ["stopped", "failed", "canceled"].includes(one.latest_build.status),
    act: startWorkspace,
    version: startVersion,
    says: "They run until you or their schedule stop them.",
  },
  stop: {
    doing: "Stop",
    right: "stop",
    able: (one) => !one.latest_build.has_external_agent && one.latest_build.status === "running",
    act: (one) => startBuild(one.id, "stop"),
    says: "Running processes end. Data on their disks is kept.",
  },
  update: {
    doing: "Update",
    right: "start",
    able: (one) => one.outdated && !isActive(one),
    act: updateToActive,
    version: (one) => one.template_active_version_id,
    says: "Each is rebuilt with the active version of its template; running workspaces restart.",
  },
  delete: {
    doing: "Delete",
    right: "remove",
    able: (one) => !isActive(one),
    act: (one) => startBuild(one.id, "delete"),
    says: "All of their data and disks are lost. This cannot be undone.",
  },
};

/** The dialog's list is what is acted on, however the list behind it changes. */
interface Asked {
  batch: Batch;
  those: readonly Workspace[];
  /** Number of selected workspaces that are skipped. */
  left: number;
}

interface BatchBarProps {
  chosen: readonly Workspace[];
  /** The next selection: empty, or the workspaces whose request was rejected. */
  onDone: (still: readonly Workspace[]) => void;
}

/** Stays while the dialog is open, even if all selected rows have left the list meanwhile. */
export function BatchBar({ chosen, onDone }: BatchBarProps) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [lacking, setLacking] = useState<readonly (readonly [Workspace, string])[]>([]);
  const queries = useQueryClient();
  const rights = useListRights();
  const able = (batch: Batch) =>
    chosen.filter(
      (workspace) => rights(workspace)[ACTS[batch].right] && ACTS[batch].able(workspace),
    );
  const ask = (batch: Batch) => {
    const those = able(batch);
    if (those.length > 0) setAsked({ batch, those, left: chosen.length - those.length });
  };
  const run = async ({ batch, those }: Asked) => {
    const { act, doing, version } = ACTS[batch];
    const results = await Promise.allSettled(those.map((workspace) => act(workspace)));
    const refused = those.flatMap((workspace, index) => {
      const result = results[index];
      return result?.status === "rejected" ? [{ workspace, why: result.reason as unknown }] : [];
    });
    const asks = version ? refused.filter(({ why }) => lacksValues(why)) : [];
    const failed = refused.filter((one) => !asks.includes(one));
    setLacking(
      asks.map(
        ({ workspace }) => [workspace, valuesPath(workspace, version?.(workspace) ?? "")] as const,
      ),
    );
    if (failed.length > 0)
      toast.failed(
        `${doing} failed: ${failed.map(({ workspace }) => workspace.name).join(", ")}`,
        failed[0]?.why,
      );
    else if (results.length > refused.length)
      toast.done(`${doing}: ${counted(results.length - refused.length, "workspace")} in progress.`);
    await queries.invalidateQueries({ queryKey: ["workspaces"] });
    onDone(refused.map(({ workspace }) => workspace));
  };
  const button = (batch: Batch, icon: ReactNode) => (
    <Button
      key={batch}
      size="sm"
      icon={icon}
      disabled={able(batch).length === 0}
      onClick={() => ask(batch)}
    >
      {ACTS[batch].doing}…
    </Button>
  );
  const act = asked ? ACTS[asked.batch] : null;
  return (
    <>
      {chosen.length > 0 ? (
        <div
          role="toolbar"
          aria-label="Selected workspaces"
          className="mb-3 flex flex-wrap items-center gap-2 rounded-lg border border-accent/40 bg-accent-soft px-3 py-1.5"
        >
          <span className="mr-auto text-sm font-medium">{chosen.length} selected</span>
          {button("start", <Play />)}
          {button("stop", <Square />)}
          {button("update", <CloudDownload />)}
          {button("delete", <Trash2 />)}
          <Button
            size="sm"
            look="quiet"
            onClick={() => {
              setLacking([]);
              onDone([]);
            }}
          >
            Clear
          </Button>
        </div>
      ) : null}
      {lacking.length > 0 ? (
        <div className="mb-3">
          <Notice
            kind="warning"
            title={`${counted(lacking.length, "workspace")} ${plural(lacking.length, "needs", "need")} parameter values`}
            actions={
              <>
                {lacking.map(([workspace, path]) => (
                  <ButtonLink
                    key={workspace.id}
                    size="sm"
                    to={path}
                  >{`Set parameters of ${workspace.owner_name}/${workspace.name}`}</ButtonLink>
                ))}
                <Button size="sm" look="quiet" onClick={() => setLacking([])}>
                  Dismiss
                </Button>
              </>
            }
          >
            The template version requires values that{" "}
            {plural(lacking.length, "the workspace does", "the workspaces do")} not have. Set them
            to build each workspace.
          </Notice>
        </div>
      ) : null}
      <Confirm
        open={asked !== null}
        onClose={() => setAsked(null)}
        danger={asked?.batch === "delete" || asked?.batch === "stop"}
        confirm={asked && act ? `${act.doing} ${asked.those.length}` : ""}
        title={asked && act ? `${act.doing} ${counted(asked.those.length, "workspace")}?` : ""}
        typed={asked?.batch === "delete" ? "delete" : undefined}
        typedLabel="Type to confirm"
        onConfirm={() => (asked ? run(asked) : Promise.resolve())}
      >
        <p>{act?.says}</p>
        <ul
          aria-label="Workspaces"
          tabIndex={0}
          className="max-h-48 list-disc overflow-y-auto pl-5"
        >
          {asked?.those.map((workspace) => (
            <li key={workspace.id}>
              {workspace.owner_name}/{workspace.name}
            </li>
          ))}
        </ul>
        {asked && asked.left > 0 ? (
          <p>
            {asked.left} of the selected{" "}
            {plural(
              asked.left,
              "is skipped: the action is not possible now, or you lack the permission.",
              "are skipped: the action is not possible now, or you lack the permission.",
            )}
          </p>
        ) : null}
      </Confirm>
    </>
  );
}
