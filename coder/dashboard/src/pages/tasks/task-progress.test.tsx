import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import type { Task } from "../../api/types";
import { FakeSocket, visit } from "../../test/world";
import { TaskApps } from "./TaskApps";

const agent = { id: "a", name: "main", log_sources: [], apps: [] };
const open = async (status: Task["status"], job: string, error = "") => {
  const task = {
    id: "t",
    owner_name: "ana",
    workspace_name: "task-1",
    workspace_id: "w",
    workspace_app_id: null,
    status,
  } as unknown as Task;
  visit([{ path: "/", element: <TaskApps task={task} /> }], "/", {
    "GET /api/v2/users/ana/workspace/task-1": {
      id: "w",
      name: "task-1",
      owner_name: "ana",
      organization_id: "o",
      latest_build: {
        id: "b",
        status: "x",
        job: { id: "j", status: job, error, queue_position: 0, queue_size: 0 },
        resources: [{ agents: [agent] }],
      },
    },
    "GET /api/v2/applications/host": { host: "" },
    "GET /api/v2/regions": { regions: [] },
    "GET /api/v2/organizations/o/provisionerjobs/j/why": {
      verdict: "no_daemon",
      summary: "No daemon has gpu=a100.",
      remedy: null,
      daemons: [],
    },
  });
  await screen.findByRole("heading", { name: "Workspace" });
};
const LOGS = { build: "/api/v2/workspacebuilds/b/logs", agent: "/api/v2/workspaceagents/a/logs" };

it.each<[Task["status"], string, keyof typeof LOGS]>([
  ["pending", "pending", "build"],
  ["pending", "running", "build"],
  ["initializing", "succeeded", "agent"],
  ["error", "failed", "build"],
  ["error", "succeeded", "agent"],
  ["unknown", "running", "build"],
])("a %s task with build %s shows the log of the %s", async (status, job, log) => {
  await open(status, job, job === "failed" ? "exit status 1" : "");
  expect(FakeSocket.opened.map((socket) => new URL(socket.url).pathname)).toEqual([LOGS[log]]);
  expect(screen.getByTestId(`${log}-log`)).toBeVisible();
  if (job === "pending") expect(await screen.findByText("No daemon has gpu=a100.")).toBeVisible();
  if (job === "failed") expect(screen.getByText("exit status 1")).toBeVisible();
});

it("shows that a paused task's workspace is stopped", async () => {
  await open("paused", "succeeded");
  expect(await screen.findByText(/is stopped while the task is paused/)).toBeVisible();
  expect(FakeSocket.opened).toEqual([]);
});
