// A task: the conversation on the left, its workspace's applications on the right.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Pause, Play, Trash2 } from "lucide-react";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";

import { ApiError, post, remove } from "../../api/client";
import { useTaskRights } from "../../api/permissions";
import { task as taskQuery, taskPath } from "../../api/queries/tasks";
import type { Task } from "../../api/types";
import { Button, ButtonLink } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { TaskApps } from "./TaskApps";
import { TaskChat } from "./TaskChat";
import { canPause, canResume, taskName } from "./task-status";
import { TaskStatusText } from "./TasksPage";

export function TaskPage() {
  const { owner = "", task: name = "" } = useParams();
  const query = useQuery(taskQuery(owner, name));
  useTitle(query.data ? taskName(query.data) : "Task", "AI Tasks");
  if (query.isPending) return <SkeletonRows rows={4} />;
  if (!query.data)
    return query.error instanceof ApiError && query.error.status === 404 ? (
      <NotFoundPage />
    ) : (
      <Failure error={query.error as Error} retry={() => void query.refetch()} />
    );
  return <Loaded task={query.data} owner={owner} name={name} />;
}

function Loaded({ task, owner, name }: { task: Task; owner: string; name: string }) {
  const home = `/@${task.owner_name}/${task.workspace_name}`;
  return (
    <>
      <PageHead
        title={taskName(task)}
        crumbs={[["Tasks", "/tasks"], [taskName(task)]]}
        badge={<TaskStatusText task={task} />}
        description={task.template_display_name || task.template_name}
        actions={
          <>
            {task.workspace_id ? <ButtonLink to={home}>Workspace</ButtonLink> : null}
            <Actions task={task} owner={owner} name={name} />
          </>
        }
      />
      {task.status === "error" ? (
        <Notice
          kind="error"
          title="The task’s workspace did not start properly"
          actions={
            task.workspace_id ? (
              <ButtonLink size="sm" to={home}>
                View details
              </ButtonLink>
            ) : null
          }
        >
          The build log and the agent’s log show the reason. Pause and resume the task to try again.
        </Notice>
      ) : null}
      <div className="mt-4 grid grid-cols-[minmax(20rem,2fr)_minmax(0,3fr)] items-start gap-4 max-lg:grid-cols-1">
        <TaskChat task={task} owner={owner} name={name} />
        <TaskApps task={task} />
      </div>
    </>
  );
}

function Actions({ task, owner, name }: { task: Task; owner: string; name: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const may = useTaskRights(task.organization_id, task.owner_id);
  const [busy, setBusy] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const act = async (action: "pause" | "resume") => {
    setBusy(true);
    try {
      await post(`${taskPath(owner, name)}/${action}`);
      await queries.invalidateQueries({ queryKey: ["task"] });
    } catch (error) {
      toast.failed(
        action === "pause" ? "Failed to pause the task" : "Failed to resume the task",
        error,
      );
    } finally {
      setBusy(false);
    }
  };
  const end = async () => {
    await remove(taskPath(owner, name));
    toast.done(`${taskName(task)} is being deleted.`);
    await navigate("/tasks");
  };
  return (
    <>
      {may.update && canPause(task) ? (
        <Button icon={<Pause />} busy={busy} onClick={() => void act("pause")}>
          Pause
        </Button>
      ) : null}
      {may.update && canResume(task) ? (
        <Button variant="primary" icon={<Play />} busy={busy} onClick={() => void act("resume")}>
          Resume
        </Button>
      ) : null}
      {may.remove ? (
        <Button icon={<Trash2 />} onClick={() => setDeleting(true)}>
          Delete…
        </Button>
      ) : null}
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${taskName(task)}?`}
        confirm="Delete"
        onConfirm={end}
      >
        <p>
          The conversation and the workspace are deleted. Changes that were not pushed elsewhere are
          lost.
        </p>
      </Confirm>
    </>
  );
}
