// What a task's workspace does before its agent listens: the log of its build, then that of its agents' scripts.
import type { Task, Workspace } from "../../api/types";
import { Section } from "../../ui/Card";
import { Notice } from "../../ui/Notice";
import { WaitingNotice } from "../../features/provisioner/WaitingNotice";
import { AgentLogs } from "../../features/workspace/AgentLogs";
import { BuildLog } from "../../features/build/BuildLog";
import { agentsOf, isActive } from "../../features/workspace/status";

/** By the task's state; null where its workspace does nothing. */
const SAID: Readonly<Record<Task["status"], string | null>> = {
  pending: "Its applications open here as soon as the workspace is ready.",
  initializing: "Its applications open here as soon as the workspace is ready.",
  active: null,
  paused: null,
  error: "What was logged says what went wrong.",
  unknown: "Its applications open here as soon as the workspace is ready.",
};

export function TaskProgress({ task, workspace }: { task: Task; workspace: Workspace }) {
  const said = SAID[task.status];
  const build = workspace.latest_build;
  if (said === null)
    return (
      <Section title="Workspace">
        <p className="text-muted">
          The workspace sleeps while the task is paused. Resume it to open its applications.
        </p>
      </Section>
    );
  const built = !isActive(workspace) && build.job.status === "succeeded";
  return (
    <Section title="Workspace" description={said}>
      <div className="flex flex-col gap-3">
        {build.job.status === "pending" ? (
          <WaitingNotice organization={workspace.organization_id} job={build.job} />
        ) : null}
        {build.job.error ? (
          <Notice kind="error" title="The build failed.">
            <p>{build.job.error}</p>
          </Notice>
        ) : null}
        {built ? (
          agentsOf(workspace).map((agent) => <AgentLogs key={agent.id} agent={agent} />)
        ) : (
          <BuildLog key={build.id} build={build.id} />
        )}
      </div>
    </Section>
  );
}
