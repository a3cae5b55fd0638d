import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { AuthorizationCheck } from "../../api/types";
import { Refusal, visit, type Answers } from "../../test/world";
import { TasksPage } from "./TasksPage";

const task = {
  id: "t1",
  name: "fix-tests",
  display_name: "Fix the tests",
  owner_name: "ana",
  initial_prompt: "Fix the failing tests",
  status: "active",
  current_state: { state: "working", message: "reading", timestamp: "2026-01-01T00:00:00Z" },
  created_at: "2026-01-01T00:00:00Z",
  workspace_name: "task-1",
  template_name: "agent",
  template_icon: "",
};
const template = {
  id: "a",
  name: "agent",
  display_name: "Agent",
  active_version_id: "v1",
  organization_id: "o",
};
const defaults: Answers = {
  "GET /api/v2/templates": [template],
  "GET /api/v2/tasks": { tasks: [task], count: 1 },
  "GET /api/v2/templateversions/v1/presets": [{ ID: "p", Name: "Large" }],
  "GET /api/v2/templateversions/v1/external-auth": [],
};
const open = (answers: Answers = {}) =>
  visit(
    [
      { path: "/tasks", Component: TasksPage },
      { path: "/tasks/:owner/:task", element: "one task" },
    ],
    "/tasks",
    { ...defaults, ...answers },
  );

it("creates a task with the template and preset", async () => {
  const page = open({ "POST /api/v2/tasks/me": { ...task, id: "t2" } });
  await userEvent.type(await screen.findByLabelText(/Prompt your AI agent/), "Write a README");
  await userEvent.selectOptions(await screen.findByLabelText("Preset"), "Large");
  await userEvent.click(screen.getByRole("button", { name: "Run task" }));
  await screen.findByText("one task");
  expect(page.sent).toEqual([
    {
      method: "POST",
      path: "/api/v2/tasks/me",
      body: { template_version_id: "v1", input: "Write a README", template_version_preset_id: "p" },
    },
  ]);
});

it("keeps the prompt after a rejection", async () => {
  open({ "POST /api/v2/tasks/me": new Refusal(403, "You may not create a task.") });
  await userEvent.type(await screen.findByLabelText(/Prompt your AI agent/), "Write a README");
  await userEvent.click(screen.getByRole("button", { name: "Run task" }));
  expect(await screen.findByText("You may not create a task.")).toBeVisible();
  expect(screen.getByLabelText(/Prompt your AI agent/)).toHaveValue("Write a README");
});

it("rejects an empty prompt without a request", async () => {
  const page = open();
  await userEvent.click(await screen.findByRole("button", { name: "Run task" }));
  expect(await screen.findByText("Enter a prompt.")).toBeVisible();
  expect(page.sent).toEqual([]);
});

it("confirms deletion with its consequences", async () => {
  const page = open({ "DELETE /api/v2/tasks/ana/t1": {} });
  await userEvent.click(await screen.findByRole("button", { name: "Delete task Fix the tests" }));
  const dialog = await screen.findByRole("dialog");
  expect(within(dialog).getByText("task-1")).toBeVisible();
  expect(page.sent).toEqual([]);
  await userEvent.click(within(dialog).getByRole("button", { name: "Delete" }));
  await waitFor(() =>
    expect(page.sent).toEqual([
      { method: "DELETE", path: "/api/v2/tasks/ana/t1", body: undefined },
    ]),
  );
});

it("explains how templates support tasks", async () => {
  open({ "GET /api/v2/templates": [], "GET /api/v2/tasks": { tasks: [], count: 0 } });
  expect(await screen.findByText("No template supports tasks yet")).toBeVisible();
  expect(await screen.findByRole("link", { name: "Create template" })).toHaveAttribute(
    "href",
    "/templates/new",
  );
  expect(screen.queryByRole("button", { name: "Run task" })).toBeNull();
});

it("offers only templates of permitted organizations", async () => {
  open({
    "GET /api/v2/templates": [
      { ...template, id: "b", display_name: "Elsewhere", organization_id: "p" },
      template,
    ],
    "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
      Object.fromEntries(
        Object.entries(checks).map(([name, { object }]) => [
          name,
          object.resource_type !== "task" || object.organization_id === "o",
        ]),
      ),
  });
  expect(
    [...(await screen.findByLabelText("Template")).children].map((option) => option.textContent),
  ).toEqual(["Agent"]);
});
