// Actions on several workspaces at once. Each is a request of its own; failures are reported and
// the rest continues.
import { useQueryClient } from "@tanstack/react-query";
import { CloudDownload, Play, Square, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";
import { createPortal } from "react-dom";

import type { WorkspaceRights } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { Button, ButtonLink } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { cx } from "../../ui/cx";
import { Notice } from "../../ui/Notice";
import { toast } from "../../ui/toast";
import { MOST, settleAll } from "../../features/workspace/all-matching";
import { isActive } from "../../features/workspace/status";
import {
  isMissingValues,
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
    label: string;
    right: keyof WorkspaceRights & ("start" | "stop" | "remove");
    able: (workspace: Workspace) => boolean;
    act: (workspace: Workspace) => Promise<unknown>;
    version?: (workspace: Workspace) => string;
    effect: string;
  }
> = {
  start: {
    label: "Start",
    right: "start",
    able: (candidate) =>
      !candidate.latest_build.has_external_agent &&
      ["stopped", "failed", "canceled"].includes(candidate.latest_build.status),
    act: startWorkspace,
    version: startVersion,
    effect: "They run until you or their schedule stop them.",
  },
  stop: {
    label: "Stop",
    right: "stop",
    able: (candidate) =>
      !candidate.latest_build.has_external_agent && candidate.latest_build.status === "running",
    act: (candidate) => startBuild(candidate.id, "stop"),
    effect: "Running processes end. Data on their disks is kept.",
  },
  update: {
    label: "Update",
    right: "start",
    able: (candidate) => candidate.outdated && !isActive(candidate),
    act: updateToActive,
    version: (candidate) => candidate.template_active_version_id,
    effect: "Each is rebuilt with the active version of its template; running workspaces restart.",
  },
  delete: {
    label: "Delete",
    right: "remove",
    able: (candidate) => !isActive(candidate),
    act: (candidate) => startBuild(candidate.id, "delete"),
    effect: "All of their data and disks are lost. This cannot be undone.",
  },
};

/** The dialog's list is what is acted on, however the list behind it changes. */
interface PendingBatch {
  batch: Batch;
  selection: readonly Workspace[];
  /** Number of selected workspaces that are skipped. */
  skipped: number;
}

interface BatchBarProps {
  /** The element after the list: from a selected row, Tab leads to the actions. */
  place: HTMLElement | null;
  chosen: readonly Workspace[];
  /** Workspaces that match the search, and of these on this page. */
  total: number;
  page: number;
  /** Select all that match. */
  onSelectAll: () => Promise<void>;
  /** The next selection: empty, or the workspaces whose request was rejected. */
  onDone: (remaining: readonly Workspace[]) => void;
}

/** Stays while the dialog is open, even if all selected rows have left the list meanwhile. */
export function BatchBar({ place, chosen, total, page, onSelectAll, onDone }: BatchBarProps) {
  const [loading, setLoading] = useState(false);
  const selectAll = () => {
    setLoading(true);
    return onSelectAll()
      .catch((error: unknown) => toast.failed("Failed to load all workspaces", error))
      .finally(() => setLoading(false));
  };
  const [pending, setPending] = useState<PendingBatch | null>(null);
  const [needingValues, setNeedingValues] = useState<readonly (readonly [Workspace, string])[]>([]);
  const queries = useQueryClient();
  const rights = useListRights();
  const able = (batch: Batch) =>
    chosen.filter(
      (workspace) => rights(workspace)[ACTS[batch].right] && ACTS[batch].able(workspace),
    );
  const ask = (batch: Batch) => {
    const selection = able(batch);
    if (selection.length > 0)
      setPending({ batch, selection, skipped: chosen.length - selection.length });
  };
  const run = async ({ batch, selection: those }: PendingBatch) => {
    const { act, label: doing, version } = ACTS[batch];
    const results = await settleAll(those, act);
    const refused = those.flatMap((workspace, index) => {
      const result = results[index];
      return result?.status === "rejected" ? [{ workspace, why: result.reason as unknown }] : [];
    });
    const needValues = version ? refused.filter(({ why: error }) => isMissingValues(error)) : [];
    const failed = refused.filter((candidate) => !needValues.includes(candidate));
    setNeedingValues(
      needValues.map(
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
      variant={batch === "delete" ? "danger" : "secondary"}
      icon={icon}
      disabled={able(batch).length === 0}
      onClick={() => ask(batch)}
    >
      {ACTS[batch].label}…
    </Button>
  );
  const act = pending ? ACTS[pending.batch] : null;
  const bar =
    chosen.length > 0 ? (
      <div
        role="toolbar"
        aria-label="Selected workspaces"
        data-bottom-actions
        className={cx(
          "fixed inset-x-3 bottom-3 z-30 mx-auto flex max-w-3xl flex-wrap items-center gap-2",
          "rounded-lg border border-accent/40 bg-raised px-3 py-2 shadow-raised lg:bottom-12",
        )}
      >
        <span role="status" className="text-sm font-medium">
          {chosen.length} selected
        </span>
        {chosen.length >= page && chosen.length < Math.min(total, MOST) ? (
          <Button size="sm" variant="quiet" busy={loading} onClick={() => void selectAll()}>
            {total <= MOST ? `Select all ${total} that match` : `Select the first ${MOST}`}
          </Button>
        ) : null}
        <span className="mr-auto" />
        {button("start", <Play />)}
        {button("stop", <Square />)}
        {button("update", <CloudDownload />)}
        {button("delete", <Trash2 />)}
        <Button
          size="sm"
          variant="quiet"
          onClick={() => {
            setNeedingValues([]);
            onDone([]);
          }}
        >
          Clear
        </Button>
      </div>
    ) : null;
  return (
    <>
      {bar && place ? createPortal(bar, place) : bar}
      {needingValues.length > 0 ? (
        <div className="mb-3">
          <Notice
            kind="warning"
            title={`${counted(needingValues.length, "workspace")} ${plural(needingValues.length, "needs", "need")} parameter values`}
            actions={
              <>
                {needingValues.map(([workspace, path]) => (
                  <ButtonLink
                    key={workspace.id}
                    size="sm"
                    to={path}
                  >{`Set parameters of ${workspace.owner_name}/${workspace.name}`}</ButtonLink>
                ))}
                <Button size="sm" variant="quiet" onClick={() => setNeedingValues([])}>
                  Dismiss
                </Button>
              </>
            }
          >
            The template version requires values that{" "}
            {plural(needingValues.length, "the workspace does", "the workspaces do")} not have. Set
            them to build each workspace.
          </Notice>
        </div>
      ) : null}
      <Confirm
        open={pending !== null}
        onClose={() => setPending(null)}
        danger={pending?.batch === "delete" || pending?.batch === "stop"}
        confirm={pending && act ? `${act.label} ${pending.selection.length}` : ""}
        title={
          pending && act ? `${act.label} ${counted(pending.selection.length, "workspace")}?` : ""
        }
        typed={pending?.batch === "delete" ? "delete" : undefined}
        typedLabel="Type to confirm"
        onConfirm={() => (pending ? run(pending) : Promise.resolve())}
      >
        <p>{act?.effect}</p>
        <ul
          aria-label="Workspaces"
          tabIndex={0}
          className="max-h-48 list-disc overflow-y-auto pl-5"
        >
          {pending?.selection.map((workspace) => (
            <li key={workspace.id}>
              {workspace.owner_name}/{workspace.name}
            </li>
          ))}
        </ul>
        {pending && pending.skipped > 0 ? (
          <p>
            {pending.skipped} of the selected{" "}
            {plural(
              pending.skipped,
              "is skipped: the action is not possible now, or you lack the permission.",
              "are skipped: the action is not possible now, or you lack the permission.",
            )}
          </p>
        ) : null}
      </Confirm>
    </>
  );
}
