// What a person should know about this workspace now, and the way on.
import { useQuery } from "@tanstack/react-query";

import { put } from "../../api/client";
import { NO_WORKSPACES, useMayCreateWorkspace } from "../../api/permissions";
import { templateById } from "../../api/queries/templates";
import type { Workspace } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Button, ButtonLink } from "../../ui/Button";
import { Notice } from "../../ui/Notice";
import { WaitingNotice } from "../provisioners/WaitingNotice";
import { agentsOf } from "../workspaces/status";
import { VERBS } from "./builds/BuildHistory";
import { FirstErrors } from "./builds/FirstErrors";
import { NewerVersion } from "./NewerVersion";
import { startBuild, useBuildAction } from "./builds/builds";
import { duplicatePath } from "./paths";

export function Banners({ workspace }: { workspace: Workspace }) {
  const build = workspace.latest_build;
  const template = useQuery({ ...templateById(workspace.template_id), staleTime: 60_000 }).data;
  const action = useBuildAction();
  const again = () => action.mutate(() => startBuild(workspace.id, build.transition));
  return (
    <>
      {build.status === "canceled" ? (
        <Notice kind="warning" title={`The last build was cancelled: ${VERBS[build.transition].toLowerCase()}.`} actions={<Button size="sm" onClick={again}>{VERBS[build.transition]} again</Button>}>
          What it had made by then may be there in part. Its log says how far it came; run it again, or choose another action above.
        </Notice>
      ) : build.job.error ? (
        <Notice kind="error" title="The last build failed." actions={<>
          <Button size="sm" onClick={again}>Retry</Button>
          <Button size="sm" look="quiet" onClick={() => action.mutate(() => startBuild(workspace.id, build.transition, { log_level: "debug" }))}>Retry with debug log</Button>
        </>}><p>{build.job.error}</p><FirstErrors build={build.id} /></Notice>
      ) : null}
      {build.job.status === "pending" ? <WaitingNotice organization={workspace.organization_id} job={build.job} /> : null}
      {build.status === "deleted" ? <Deleted workspace={workspace} /> : null}
      {workspace.dormant_at ? (
        <Notice kind="warning" title={<>This workspace is dormant since <Ago at={workspace.dormant_at} />.</>} actions={<Button size="sm" onClick={() => action.mutate(() => put(`/api/v2/workspaces/${workspace.id}/dormant`, { dormant: false }))}>Activate</Button>}>
          It was not used for long.{workspace.deleting_at ? <> It will be deleted <strong><Ago at={workspace.deleting_at} /></strong>, with everything in it.</> : null}
        </Notice>
      ) : null}
      {build.status === "stopped" && !workspace.dormant_at ? <Notice kind="info" title="This workspace is stopped.">Start it to reach its agents.</Notice> : null}
      {workspace.outdated && build.status !== "deleted" ? <Notice kind="info" title="A newer version of its template is active."><NewerVersion workspace={workspace} />{workspace.template_require_active_version ? "Its next start will use it." : "Update when it suits you."}</Notice> : null}
      {template?.deprecated ? <Notice kind="warning" title="Its template is deprecated.">{template.deprecation_message}</Notice> : null}
      <Unhealthy workspace={workspace} />
    </>
  );
}

function Deleted({ workspace }: { workspace: Workspace }) {
  const mayCreate = useMayCreateWorkspace(workspace.organization_id);
  return (
    <Notice kind="info" title="This workspace has been deleted." actions={mayCreate ? <ButtonLink size="sm" to={duplicatePath(workspace)}>Create one like it</ButtonLink> : null}>
      {mayCreate === false ? NO_WORKSPACES : null}
    </Notice>
  );
}

function Unhealthy({ workspace }: { workspace: Workspace }) {
  const sick = agentsOf(workspace).filter((agent) => agent.status === "connected" && !agent.health.healthy && agent.health.reason);
  return sick.map((agent) => (
    <Notice key={agent.id} kind="warning" title={`The agent ${agent.name} is not well: ${agent.health.reason}`}
      actions={/^https?:/i.test(agent.troubleshooting_url) ? <a className="text-sm font-medium underline" href={agent.troubleshooting_url} target="_blank" rel="noreferrer">Troubleshooting</a> : null} />
  ));
}
