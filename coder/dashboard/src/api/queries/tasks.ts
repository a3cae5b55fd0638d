// Tasks: prompts to a workspace's agent, and the conversation about them.
import { queryOptions } from "@tanstack/react-query";

import { get, seg, withQuery } from "../client";
import type { Task, TaskLogsResponse, TasksListResponse } from "../types";

const LIST_REFRESH_MS = 5000;
const TASK_REFRESH_MS = 2000;

export const TASKS_SHOWN = 25;

export const tasks = (query: string, page: number) =>
  queryOptions({
    queryKey: ["tasks", query, page],
    queryFn: () =>
      get<TasksListResponse>(
        withQuery("/api/v2/tasks", {
          q: query,
          limit: TASKS_SHOWN,
          offset: (page - 1) * TASKS_SHOWN || undefined,
        }),
      ),
    refetchInterval: LIST_REFRESH_MS,
  });

export const taskPath = (owner: string, task: string): string =>
  `/api/v2/tasks/${seg(owner)}/${seg(task)}`;

export const task = (owner: string, name: string) =>
  queryOptions({
    queryKey: ["task", owner, name],
    queryFn: () => get<Task>(taskPath(owner, name)),
    refetchInterval: TASK_REFRESH_MS,
  });

export const taskLogs = (owner: string, name: string, live: boolean) =>
  queryOptions({
    queryKey: ["task", owner, name, "logs", live],
    queryFn: () => get<TaskLogsResponse>(`${taskPath(owner, name)}/logs`),
    refetchInterval: live ? TASK_REFRESH_MS : false,
    retry: false,
  });
