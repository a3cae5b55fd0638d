// Notices about the workspace, and the next step for each.
import { useQuery } from "@tanstack/react-query";

import { put } from "../../api/client";
import {
  NO_WORKSPACES,
  useMayCreateWorkspace,
  usePermissions,
  useWorkspaceRights,
} from "../../api/permissions";
import { deploymentConfig } from "../../api/queries/deployment";
import { templateById } from "../../api/queries/templates";
import { buildParameters } from "../../api/queries/workspaces";
import type { Workspace } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Button, ButtonLink } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { toast } from "../../ui/toast";
import { WaitingNotice } from "../../features/provisioner/WaitingNotice";
import { agentsOf, statusOf } from "../../features/workspace/status";
import { Troubleshooting } from "./agent/AgentStatus";
import { VERBS } from "./builds/BuildHistory";
import { FirstErrors } from "../../features/build/FirstErrors";
import { NewerVersion } from "./NewerVersion";
import {
  startBuild,
  startVersion,
  startWorkspace,
  useOpenForValues,
  useBuildAction,
  type BuildOptions,
} from "./builds/builds";
import { duplicatePath, workspacePath } from "./paths";

export function Banners({ workspace }: { workspace: Workspace }) {
  const build = workspace.latest_build;
  const template = useQuery({ ...templateById(workspace.template_id), staleTime: 60_000 }).data;
  const action = useBuildAction();
  const may = useWorkspaceRights(workspace);
  const mayBuild = may[build.transition === "delete" ? "remove" : build.transition];
  const openForValues = useOpenForValues();
  const failed = (error: Error) => toast.failed("The action failed", error);
  const retry = (options: BuildOptions = {}) =>
    action.mutate(
      () =>
        openForValues(workspace, startVersion(workspace), () =>
          build.transition === "start"
            ? startWorkspace(workspace, options)
            : startBuild(workspace.id, build.transition, options),
        ),
      { onError: failed },
    );
  return (
    <>
      {statusOf(workspace) === "canceled" ? (
        <Notice
          kind="warning"
          title={`Last build canceled: ${VERBS[build.transition].toLowerCase()}`}
          actions={
            mayBuild ? (
              <Button size="sm" busy={action.isPending} onClick={() => retry()}>
                {VERBS[build.transition]} again
              </Button>
            ) : null
          }
        >
          {build.job.started_at
            ? "Some of its changes may have been applied; the log shows how far it got. Run it again, or choose another action above."
            : "The build had not started: nothing was changed."}
          {build.job.error ? <p>{build.job.error}</p> : null}
        </Notice>
      ) : build.job.error ? (
        <Notice
          kind="error"
          title="The last build failed"
          actions={
            mayBuild ? (
              <>
                <Button size="sm" busy={action.isPending} onClick={() => retry()}>
                  Retry
                </Button>
                <RetryWithDebugLog
                  disabled={action.isPending}
                  onRetry={() => retry({ log_level: "debug" })}
                />
                {may.update && build.transition === "start" ? (
                  <ChangeParameters workspace={workspace} />
                ) : null}
              </>
            ) : null
          }
        >
          <p>{build.job.error}</p>
          <FirstErrors build={build.id} />
        </Notice>
      ) : null}
      {build.job.status === "pending" ? (
        <WaitingNotice organization={workspace.organization_id} job={build.job} />
      ) : null}
      {build.status === "deleted" ? <Deleted workspace={workspace} /> : null}
      {workspace.dormant_at ? (
        <Notice
          kind="warning"
          title={
            <>
              This workspace has been dormant since <Ago at={workspace.dormant_at} />.
            </>
          }
          actions={
            may.update ? (
              <Button
                size="sm"
                busy={action.isPending}
                onClick={() =>
                  action.mutate(
                    () => put(`/api/v2/workspaces/${workspace.id}/dormant`, { dormant: false }),
                    { onError: failed },
                  )
                }
              >
                Activate
              </Button>
            ) : null
          }
        >
          This workspace has not been used for a long time.
          {workspace.deleting_at ? (
            <>
              {" "}
              It will be deleted{" "}
              <strong>
                <Ago at={workspace.deleting_at} />
              </strong>
              , including all of its data.
            </>
          ) : null}
        </Notice>
      ) : null}
      {build.status === "stopped" && !workspace.dormant_at ? (
        <Notice kind="info" title="This workspace is stopped">
          {may.start === false
            ? "You need permission to start it before you can use its agents."
            : "Start it to use its agents."}
        </Notice>
      ) : null}
      {workspace.outdated && build.status !== "deleted" ? (
        <Notice kind="info" title="A newer template version is active">
          <NewerVersion workspace={workspace} />
          {workspace.template_require_active_version
            ? "The next start will use it."
            : "Update the workspace to use it."}
        </Notice>
      ) : null}
      {template?.deprecated ? (
        <Notice kind="warning" title="The template of this workspace is deprecated">
          {template.deprecation_message}
        </Notice>
      ) : null}
      <Unhealthy workspace={workspace} />
    </>
  );
}

/**
 * The server's rule: only if the deployment allows Terraform debug logs, and for users who may view
 * its settings.
 */
function RetryWithDebugLog({ disabled, onRetry }: { disabled: boolean; onRetry: () => void }) {
  const may = usePermissions();
  const config = useQuery({ ...deploymentConfig, enabled: may.viewDeploymentConfig }).data?.config;
  if (!may.viewDeploymentConfig || config?.["enable_terraform_debug_mode"] !== true) return null;
  return (
    <Button size="sm" variant="quiet" disabled={disabled} onClick={onRetry}>
      Retry with debug log
    </Button>
  );
}

/**
 * A start may have failed because of its parameters: retrying alone would repeat the same request.
 */
function ChangeParameters({ workspace }: { workspace: Workspace }) {
  const chosen = useQuery(buildParameters(workspace.latest_build.id)).data ?? [];
  return chosen.length > 0 ? (
    <ButtonLink size="sm" variant="quiet" to={`${workspacePath(workspace)}/settings/parameters`}>
      Change parameters
    </ButtonLink>
  ) : null;
}

function Deleted({ workspace }: { workspace: Workspace }) {
  const mayCreate = useMayCreateWorkspace(workspace.organization_id);
  return (
    <Notice
      kind="info"
      title="This workspace was deleted"
      actions={
        mayCreate ? (
          <ButtonLink size="sm" to={duplicatePath(workspace)}>
            Create a similar workspace
          </ButtonLink>
        ) : null
      }
    >
      {mayCreate === false ? NO_WORKSPACES : null}
    </Notice>
  );
}

function Unhealthy({ workspace }: { workspace: Workspace }) {
  const unhealthyAgents = agentsOf(workspace).filter(
    (agent) => agent.status === "connected" && !agent.health.healthy && agent.health.reason,
  );
  return unhealthyAgents.map((agent) => (
    <Notice
      key={agent.id}
      kind="warning"
      title={`Agent ${agent.name} is unhealthy: ${agent.health.reason}`}
      actions={<Troubleshooting agent={agent} />}
    />
  ));
}
