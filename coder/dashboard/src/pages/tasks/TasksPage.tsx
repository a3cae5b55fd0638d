// Tasks: a prompt box, and the list of tasks.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Bot, Trash2 } from "lucide-react";
import { useState } from "react";

import { ApiError, remove } from "../../api/client";
import { NO_TASKS, useCreationIn, usePermissions, useTaskRights } from "../../api/permissions";
import { templates } from "../../api/queries/templates";
import { taskPath, tasks, TASKS_SHOWN } from "../../api/queries/tasks";
import type { Task } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { StatusText } from "../../ui/Badge";
import { ButtonLink, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure, LoadFailure } from "../../ui/Failure";
import { FilterBar, useListAddress } from "../../ui/lists/FilterBar";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack, TextLink } from "../../ui/Page";
import { Pager } from "../../ui/lists/Pager";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { NewTask } from "./NewTask";
import { taskAddress, taskName, taskStatus } from "./task-status";

const STATUSES = ["pending", "initializing", "active", "paused", "error"].map((value) => ({
  value,
  text: taskStatus({ status: value as Task["status"], current_state: null }).text,
}));

export function TasksPage() {
  useTitle("AI Tasks");
  const may = usePermissions();
  const queries = useQueryClient();
  const { filter, page, show } = useListAddress("owner:me");
  const able = useQuery(templates("has-ai-task:true"));
  const list = useQuery(tasks(filter, page));
  const [deleting, setDeleting] = useState<Task | null>(null);
  const refused =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  const end = async () => {
    if (!deleting) return;
    await remove(taskPath(deleting.owner_name, deleting.id));
    await queries.invalidateQueries({ queryKey: ["tasks"] });
    toast.done(`${taskName(deleting)} is being deleted.`);
  };
  const columns: Column<Task>[] = [
    {
      id: "name",
      header: "Task",
      cell: (row) => (
        <div className="flex min-w-0 items-center gap-3">
          <Avatar name={row.template_name} src={row.template_icon} square />
          <div className="min-w-0">
            <TextLink to={taskAddress(row)} className="block text-text [overflow-wrap:anywhere]">
              {taskName(row)}
            </TextLink>
            <p className="line-clamp-1 text-sm text-muted">{row.initial_prompt}</p>
          </div>
        </div>
      ),
    },
    { id: "status", header: "Status", cell: (row) => <TaskStatusText task={row} /> },
    { id: "owner", header: "Owner", extra: true, cell: (row) => row.owner_name },
    {
      id: "created",
      header: "Created",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <Ago at={row.created_at} />
        </span>
      ),
    },
    {
      id: "end",
      header: "Actions",
      hidden: true,
      align: "right",
      cell: (row) => <End task={row} onAsk={() => setDeleting(row)} />,
    },
  ];
  const some = (able.data ?? []).length > 0;
  const making = useCreationIn("tasks", [
    ...new Set((able.data ?? []).map((template) => template.organization_id)),
  ]);
  const permitted = (able.data ?? []).filter((template) =>
    making?.includes(template.organization_id),
  );
  return (
    <>
      <PageHead
        title="Tasks"
        description="Describe the work; an AI agent does it in its own workspace."
      />
      <Stack>
        {some && making ? (
          permitted.length > 0 ? (
            <NewTask templates={permitted} />
          ) : (
            <p className="text-muted">{NO_TASKS}</p>
          )
        ) : null}
        <LoadFailure query={able} title="Failed to load the templates for tasks" />
        {able.data && !some ? (
          <Notice
            kind="info"
            title="No template supports tasks yet"
            actions={
              may.createAnyTemplate ? (
                <ButtonLink size="sm" to="/templates/new">
                  Create template
                </ButtonLink>
              ) : null
            }
          >
            Add a <code>coder_ai_task</code> and an application that its agent communicates through
            to a template.
          </Notice>
        ) : null}
        <div>
          <FilterBar
            label="Search tasks"
            placeholder="owner:me status:active"
            filter={filter}
            onChange={(next) => show(next)}
            problem={refused}
            presets={[
              ["My tasks", "owner:me"],
              ["Waiting for me", "owner:me status:active"],
              ["Paused", "owner:me status:paused"],
              ["All tasks", ""],
            ]}
            menus={[{ term: "status", label: "Status", options: STATUSES }]}
          />
          {list.isPending ? <SkeletonRows rows={4} /> : null}
          {list.isError && !refused ? (
            <Failure error={list.error} retry={() => void list.refetch()} />
          ) : null}
          {list.data ? (
            <DataTable
              label="Tasks"
              data={list.data.tasks}
              columns={columns}
              rowKey={(row) => row.id}
              rowTestId={(row) => `task-${row.name}`}
              empty={
                <Empty
                  icon={Bot}
                  title={filter === "owner:me" ? "No tasks yet" : "No results"}
                  {...(permitted.length > 0
                    ? { command: 'coder task create "fix the failing test"' }
                    : {})}
                >
                  {filter === "owner:me"
                    ? "Tasks are prompts that an agent works on in the background. Enter a prompt above to start one."
                    : "Change or clear the search."}
                </Empty>
              }
            />
          ) : null}
          {list.data ? (
            <Pager
              page={page}
              stale={list.isPlaceholderData}
              size={TASKS_SHOWN}
              total={list.data.count}
              onChange={(next) => show(filter, next)}
            />
          ) : null}
        </div>
      </Stack>
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete ${deleting ? taskName(deleting) : ""}?`}
        confirm="Delete"
        onConfirm={end}
      >
        <p>
          The conversation and the task’s workspace{" "}
          {deleting?.workspace_name ? <strong>{deleting.workspace_name}</strong> : null} are
          deleted. Changes that were not pushed elsewhere are lost.
        </p>
      </Confirm>
    </>
  );
}

function End({ task, onAsk }: { task: Task; onAsk: () => void }) {
  const may = useTaskRights(task.organization_id, task.owner_id);
  return may.remove ? (
    <IconButton size="sm" label={`Delete task ${taskName(task)}`} onClick={onAsk}>
      <Trash2 />
    </IconButton>
  ) : null;
}

export function TaskStatusText({ task }: { task: Task }) {
  const { tone, text, pulse } = taskStatus(task);
  return (
    <div>
      <StatusText tone={tone} pulse={pulse}>
        {text}
      </StatusText>
      {task.current_state?.message ? (
        <p className="line-clamp-1 text-sm text-muted">{task.current_state.message}</p>
      ) : null}
    </div>
  );
}
