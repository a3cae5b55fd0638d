// The applications of a task's workspace, each in a tab of its own; until they are ready, the
// workspace's progress.
import { useQuery } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";
import { useState } from "react";

import { useAppBase, type AppBase } from "../../api/app-base";
import { workspaceByName } from "../../api/queries/workspaces";
import type { Task, Workspace, WorkspaceAgent, WorkspaceApp } from "../../api/types";
import { buttonClass } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { addressOf } from "../../features/workspace/app-address";
import { isLive } from "./task-status";
import { TaskProgress } from "./TaskProgress";

const REFRESH_MS = 5000;

export function TaskApps({ task }: { task: Task }) {
  const workspace = useQuery({
    ...workspaceByName(task.owner_name, task.workspace_name),
    enabled: task.workspace_id !== null,
    refetchInterval: REFRESH_MS,
  });
  if (task.workspace_id === null)
    return (
      <Section title="Workspace">
        <p className="text-muted">This task’s workspace was deleted.</p>
      </Section>
    );
  if (workspace.isLoadingError)
    return <Failure error={workspace.error} retry={() => void workspace.refetch()} />;
  if (!workspace.data) return <SkeletonRows rows={2} />;
  return isLive(task) ? (
    <Apps task={task} workspace={workspace.data} />
  ) : (
    <TaskProgress task={task} workspace={workspace.data} />
  );
}

function Apps({ task, workspace }: { task: Task; workspace: Workspace }) {
  const base = useAppBase();
  const all = workspace.latest_build.resources.flatMap((resource) =>
    (resource.agents ?? []).flatMap((agent) => agent.apps.map((app) => ({ app, agent }))),
  );
  const shown = all.filter(
    ({ app }) => !app.external && (!app.hidden || app.id === task.workspace_app_id),
  );
  const [chosen, setChosen] = useState("");
  const first = shown.find(({ app }) => app.id === task.workspace_app_id) ?? shown[0];
  if (base === null) return <SkeletonRows rows={2} />;
  if (!first)
    return (
      <Section title="Applications">
        <p className="text-muted">The template has no applications that open in a browser.</p>
      </Section>
    );
  const value = shown.some(({ app }) => app.id === chosen) ? chosen : first.app.id;
  return (
    <Tabs
      label="Applications"
      value={value}
      onChange={setChosen}
      items={shown.map(({ app }) => ({ value: app.id, text: app.display_name || app.slug }))}
    >
      {shown.map(({ app, agent }) => (
        <TabPanel key={app.id} value={app.id} className="pt-3">
          <AppFrame app={app} agent={agent} workspace={workspace} base={base} />
        </TabPanel>
      ))}
    </Tabs>
  );
}

function AppFrame({
  app,
  agent,
  workspace,
  base,
}: {
  app: WorkspaceApp;
  agent: WorkspaceAgent;
  workspace: Workspace;
  base: AppBase;
}) {
  const address = addressOf(app, workspace, agent, base);
  const name = app.display_name || app.slug;
  if (address === null)
    return (
      <p className="text-muted">
        {name} needs a subdomain, but this deployment has no wildcard access URL.
      </p>
    );
  // An application on this origin could act as the user if it were framed: it opens in a new browser
  // tab instead.
  const framed = app.subdomain;
  return (
    <div className="flex flex-col gap-2">
      <div>
        <a
          className={buttonClass("secondary", "sm")}
          href={address}
          target="_blank"
          rel="noreferrer"
        >
          Open {name}
          <ExternalLink aria-hidden="true" />
        </a>
      </div>
      {framed ? (
        <iframe
          title={name}
          src={address}
          className="h-[60vh] w-full rounded-lg border border-line bg-surface"
          sandbox="allow-scripts allow-same-origin allow-forms allow-popups allow-downloads"
        />
      ) : (
        <p className="text-sm text-muted">
          This application uses a path of this site and opens in a new tab.
        </p>
      )}
    </div>
  );
}
