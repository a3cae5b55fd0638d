// A workspace: its state, actions, agents and resources; in the sidebar its schedule, cost and
// builds.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";

import { useWorkspaceRights } from "../../api/permissions";
import { workspaceQuota } from "../../api/queries/workspaces";
import type { Workspace } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { templatePath } from "../../features/template/paths";
import { isActive } from "../../features/workspace/status";
import { WorkspaceStatus } from "./WorkspaceStatus";
import { AppStatuses } from "./agent/AppStatuses";
import { Banners } from "./Banners";
import { BuildHistory } from "./builds/BuildHistory";
import { BuildLog } from "../../features/build/BuildLog";
import { Resources } from "./Resources";
import { ScheduleControl } from "./ScheduleControl";
import { Timings } from "./builds/Timings";
import { EXTERNAL_REASON, WorkspaceActions } from "./WorkspaceActions";
import { useWorkspace } from "./useWorkspace";

export function WorkspacePage() {
  const { workspace, view } = useWorkspace();
  return workspace ? <Loaded workspace={workspace} /> : view;
}

function Loaded({ workspace }: { workspace: Workspace }) {
  useTitle(`${workspace.owner_name}/${workspace.name}`);
  const build = workspace.latest_build;
  const may = useWorkspaceRights(workspace);
  return (
    <>
      <PageHead
        title={workspace.name}
        crumbs={[["Workspaces", "/workspaces"], [workspace.owner_name]]}
        badge={
          <>
            <WorkspaceStatus workspace={workspace} />
            {workspace.outdated ? <Tag tone="warn">Outdated</Tag> : null}
            {(workspace.shared_with?.length ?? 0) > 0 ? <Tag>Shared</Tag> : null}
          </>
        }
        icon={
          <Avatar name={workspace.template_name} src={workspace.template_icon} size="lg" square />
        }
        description={
          <>
            <Link
              className="hover:text-text hover:underline"
              to={templatePath({
                organization_name: workspace.organization_name,
                name: workspace.template_name,
              })}
            >
              {workspace.template_display_name || workspace.template_name}
            </Link>
            {"\u00a0· "}version {build.template_version_name}&nbsp;· built{" "}
            <Ago at={build.created_at} />
          </>
        }
        actions={<WorkspaceActions workspace={workspace} />}
      />
      <div className="grid grid-cols-[minmax(0,1fr)_17rem] items-start gap-6 max-lg:grid-cols-1">
        <Stack>
          {build.has_external_agent ? (
            <p id="external-reason" className="text-sm text-muted">
              {EXTERNAL_REASON}
              {build.status === "stopped"
                ? ` The workspace is stopped. Run "coder start ${workspace.name}", then attach the machine again with the new command.`
                : null}
            </p>
          ) : null}
          <Banners workspace={workspace} />
          {isActive(workspace) || build.status === "failed" ? (
            <BuildLog key={build.id} build={build.id} />
          ) : null}
          {build.status === "deleted" || build.status === "deleting" ? null : (
            <Resources workspace={workspace} />
          )}
        </Stack>
        <aside className="flex flex-col gap-5">
          {build.has_external_agent || build.status === "deleted" ? null : (
            <Side title="Schedule">
              <ScheduleControl workspace={workspace} allowed={may.update === true} />
            </Side>
          )}
          <AppStatuses workspace={workspace} />
          <Quota workspace={workspace} />
          <Side title="Builds">
            <BuildHistory workspace={workspace} />
          </Side>
          {isActive(workspace) ? null : (
            <details>
              <summary className="text-sm font-medium text-muted">Build timeline</summary>
              <div className="mt-2">
                <Timings build={build.id} />
              </div>
            </details>
          )}
        </aside>
      </div>
    </>
  );
}

function Side({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2 className="mb-1.5 text-sm font-medium text-muted">{title}</h2>
      {children}
    </section>
  );
}

function Quota({ workspace }: { workspace: Workspace }) {
  const quota = useQuery(workspaceQuota(workspace.organization_id, workspace.owner_id)).data;
  const cost = workspace.latest_build.daily_cost;
  if (cost === 0 && (!quota || quota.budget <= 0)) return null;
  return (
    <Side title="Cost">
      <p>{cost} per day</p>
      {quota && quota.budget > 0 ? (
        <p className="text-sm text-muted">
          {quota.credits_consumed} of {quota.budget} of {workspace.owner_name}’s quota used.
        </p>
      ) : null}
    </Side>
  );
}
