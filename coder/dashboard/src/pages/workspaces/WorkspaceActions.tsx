// Actions on a workspace: the next step as a button, the rest in a menu. An external machine
// explains why it cannot be started or stopped.
import { useQueryClient } from "@tanstack/react-query";
import { CloudDownload, Play, RotateCw, Square } from "lucide-react";
import { lazy, Suspense, useState, type ReactNode } from "react";

import { ApiError } from "../../api/client";
import { useWorkspaceRights } from "../../api/permissions";
import { versionParameters } from "../../api/queries/templates";
import { buildParameters } from "../../api/queries/workspaces";
import type { Workspace } from "../../api/types";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { toast } from "../../ui/toast";
import { isStaged } from "../../features/workspace/offers";
import { isActive } from "../../features/workspace/status";
import {
  needsValues,
  startBuild,
  startVersion,
  startWorkspace,
  stopThenStart,
  updateToActive,
  useOpenForValues,
  useBuildAction,
} from "./builds/builds";
import { CancelBuild } from "./builds/CancelBuild";
import { StartConfirm, ValuesConfirm } from "./builds/StartConfirm";
import { NewerVersion } from "./NewerVersion";
import { MoreMenu } from "./MoreMenu";

// The parameter form is large, and few templates have ephemeral parameters.
const BuildOptions = lazy(async () => ({
  default: (await import("./builds/BuildOptions")).BuildOptions,
}));

// Most updates are confirmed without a preview.
const WorkspacePreview = lazy(async () => ({
  default: (await import("../../features/workspace/preview/WorkspacePreview")).WorkspacePreview,
}));

export const EXTERNAL_REASON =
  "This machine is managed outside Coder and cannot be started, stopped or restarted here.";

export function WorkspaceActions({ workspace }: { workspace: Workspace }) {
  const queries = useQueryClient();
  const build = useBuildAction();
  const may = useWorkspaceRights(workspace);
  const [confirming, setConfirming] = useState<
    "update" | "values" | "restart" | "start" | "ephemeral restart" | null
  >(null);
  const openForValues = useOpenForValues();
  const { status } = workspace.latest_build;
  const external = workspace.latest_build.has_external_agent === true;
  const active = isActive(workspace);
  if (status === "deleted") return null;
  const failed = (error: Error) => toast.failed("The action failed", error);
  const run = (act: () => Promise<unknown>) =>
    build.mutate(() => openForValues(workspace, startVersion(workspace), act), { onError: failed });
  const parametersOf = (version: string) =>
    queries.ensureQueryData(versionParameters(version)).catch((error: unknown) => {
      // A user of a shared workspace may not read its template: the server checks the values.
      if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return [];
      throw error;
    });
  const isEphemeral = async () =>
    (await parametersOf(startVersion(workspace))).some((parameter) => parameter.ephemeral);
  const begin = (act: (ephemeral: boolean) => void) => () =>
    void isEphemeral().then(act, (error: unknown) =>
      toast.failed("Failed to load the template’s parameters", error),
    );
  const start = begin((ephemeral) => {
    if (ephemeral) setConfirming("start");
    else run(() => startWorkspace(workspace));
  });
  const restart = begin((ephemeral) => setConfirming(ephemeral ? "ephemeral restart" : "restart"));
  const update = async () => {
    const [parameters, values] = await Promise.all([
      parametersOf(workspace.template_active_version_id),
      queries.fetchQuery(buildParameters(workspace.latest_build.id)),
    ]);
    if (needsValues(parameters, values)) setConfirming("values");
    else
      await openForValues(workspace, workspace.template_active_version_id, () =>
        build.mutateAsync(() => updateToActive(workspace)),
      );
  };
  const canStart = status === "stopped" || status === "failed" || status === "canceled";
  const button = (
    label: string,
    icon: ReactNode,
    testId: string,
    act: () => void,
    possible: boolean,
  ) =>
    external ? null : (
      <Button
        icon={icon}
        variant={label === "Start" && possible && !workspace.outdated ? "primary" : "secondary"}
        data-testid={testId}
        disabled={!possible || build.isPending}
        onClick={act}
      >
        {label}
      </Button>
    );
  return (
    <>
      {workspace.outdated && !active && may.start && !workspace.dormant_at ? (
        <Button
          variant="primary"
          icon={<CloudDownload />}
          data-testid="workspace-update-button"
          disabled={build.isPending}
          onClick={() => setConfirming("update")}
        >
          Update…
        </Button>
      ) : null}
      {may.start === false && may.stop === false ? (
        <span className="text-sm text-muted">
          You can view this workspace but not start or stop it.
        </span>
      ) : (
        <>
          {may.start ? button("Start", <Play />, "workspace-start", start, canStart) : null}
          {may.start && canStart && !external ? (
            <Suspense fallback={null}>
              <BuildOptions
                workspace={workspace}
                verb="Start"
                onBuild={(values) =>
                  run(() => startWorkspace(workspace, { rich_parameter_values: values }))
                }
              />
            </Suspense>
          ) : null}
          {may.stop
            ? button(
                "Stop",
                <Square />,
                "workspace-stop-button",
                () => run(() => startBuild(workspace.id, "stop")),
                status === "running" || status === "failed",
              )
            : null}
          {may.start && may.stop
            ? button(
                "Restart",
                <RotateCw />,
                "workspace-restart-button",
                restart,
                status === "running",
              )
            : null}
          {may.start && may.stop && status === "running" && !external ? (
            <Suspense fallback={null}>
              <BuildOptions
                workspace={workspace}
                verb="Restart"
                onBuild={(values) =>
                  run(() => stopThenStart(workspace, { rich_parameter_values: values }))
                }
              />
            </Suspense>
          ) : null}
        </>
      )}
      <CancelBuild workspace={workspace} />
      <MoreMenu
        workspace={workspace}
        may={may}
        asking={confirming === "start" || confirming === "ephemeral restart"}
      />
      <StartConfirm
        open={confirming === "start"}
        workspace={workspace}
        verb="start"
        onClose={() => setConfirming(null)}
        onContinue={() => run(() => startWorkspace(workspace))}
      />
      <StartConfirm
        open={confirming === "ephemeral restart"}
        workspace={workspace}
        verb="restart"
        onClose={() => setConfirming(null)}
        onContinue={() => run(() => stopThenStart(workspace))}
      />
      <ValuesConfirm
        open={confirming === "values"}
        workspace={workspace}
        onClose={() => setConfirming(null)}
      />
      <Confirm
        open={confirming === "restart"}
        onClose={() => setConfirming(null)}
        danger={false}
        title={`Restart ${workspace.name}?`}
        confirm="Restart"
        onConfirm={async () => {
          run(() => stopThenStart(workspace));
        }}
      >
        The workspace stops, then starts again. Running processes end.
      </Confirm>
      <Confirm
        open={confirming === "update"}
        onClose={() => setConfirming((now) => (now === "update" ? null : now))}
        danger={false}
        title={`Update ${workspace.name}?`}
        confirm="Update"
        onConfirm={update}
      >
        <NewerVersion workspace={workspace} />
        The workspace is rebuilt with {isStaged(workspace) ? "this" : "the active"} version of its
        template. Running processes end. The preview shows what is kept.
        {may.update ? (
          <Suspense fallback={null}>
            <WorkspacePreview workspace={workspace} />
          </Suspense>
        ) : null}
      </Confirm>
    </>
  );
}
