// Progress of a task's workspace before its agent is ready: the build log, then the logs of the
// agents' scripts.
import type { Task, Workspace } from "../../api/types";
import { Section } from "../../ui/Card";
import { Notice } from "../../ui/Notice";
import { stateOf } from "../../features/provisioner/job-states";
import { WaitingNotice } from "../../features/provisioner/WaitingNotice";
import { AgentLogs } from "../../features/workspace/AgentLogs";
import { BuildLog } from "../../features/build/BuildLog";
import { agentsOf, isActive } from "../../features/workspace/status";

/** Text by the task's state; null if the workspace makes no progress. */
const MESSAGES: Readonly<Record<Task["status"], string | null>> = {
  pending: "Applications open here as soon as the workspace is ready.",
  initializing: "Applications open here as soon as the workspace is ready.",
  active: null,
  paused: null,
  error: "The log shows what went wrong.",
  unknown: "Applications open here as soon as the workspace is ready.",
};

export function TaskProgress({ task, workspace }: { task: Task; workspace: Workspace }) {
  const message = MESSAGES[task.status];
  const build = workspace.latest_build;
  if (message === null)
    return (
      <Section title="Workspace">
        <p className="text-muted">
          The workspace is stopped while the task is paused. Resume the task to open its
          applications.
        </p>
      </Section>
    );
  const built = !isActive(workspace) && build.job.status === "succeeded";
  return (
    <Section title="Workspace" description={message}>
      <div className="flex flex-col gap-3">
        {build.job.status === "pending" ? (
          <WaitingNotice organization={workspace.organization_id} job={build.job} />
        ) : null}
        {build.job.error ? (
          <Notice
            kind={stateOf(build.job) === "canceled" ? "warning" : "error"}
            title={`The build ${stateOf(build.job) === "canceled" ? "was canceled" : "failed"}`}
          >
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
