import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Template, TemplateVersion, WorkspaceAgent } from "../../../api/types";
import { Refusal, visit, type Answers } from "../../../test/world";
import { problemOf, runTest, type Progress } from "./test-run";
import { TestRunDialog } from "./TestRunDialog";

const agent = (changes: object = {}) => ({
  id: "a",
  name: "main",
  parent_id: null,
  status: "connected",
  lifecycle_state: "ready",
  apps: [],
  ...changes,
});
const workspace = (job: string, changes: object = {}) => ({
  id: "w",
  name: "test-1",
  owner_name: "ana",
  latest_build: {
    id: "b",
    job: { status: job, error: job === "failed" ? "no capacity" : "" },
    resources: [{ agents: [agent()] }],
    ...changes,
  },
});

/** The answers of a server: the states of the workspace, one a request, the last one for all others. */
function server(states: readonly unknown[], more: Answers = {}): Answers {
  let asked = 0;
  return {
    "POST /api/v2/users/me/workspaces": workspace("pending"),
    "GET /api/v2/workspaces/w": () => states[Math.min(asked++, states.length - 1)],
    "POST /api/v2/workspaces/w/builds": {},
    "PATCH /api/v2/workspacebuilds/b/cancel": {},
    ...more,
  };
}

async function run(answers: Answers, signal = new AbortController().signal) {
  const page = visit([{ path: "/", element: null }], "/", answers);
  const steps: Progress[] = [];
  const ok = await runTest({
    version: "v",
    name: "test-1",
    values: [],
    onProgress: (progress) => steps.push(progress),
    onWorkspace: () => undefined,
    signal,
    pause: () => Promise.resolve(),
  });
  const ended = steps.filter(({ state }) => state !== "running");
  return { ok, steps: ended.map(({ step, state, text }) => [step, state, text]), sent: page.sent };
}
const gone = new Refusal(410, "gone");
const sentOf = (sent: readonly { method: string; path: string }[]) =>
  sent.map(({ method, path }) => `${method} ${path}`);
const CREATE = "POST /api/v2/users/me/workspaces";
const DELETE = "POST /api/v2/workspaces/w/builds";

it("builds, waits for the agents, and deletes", async () => {
  const starting = workspace("succeeded", {
    resources: [{ agents: [agent({ lifecycle_state: "starting" })] }],
  });
  const ready = workspace("succeeded");
  const { ok, steps, sent } = await run(
    server([workspace("running"), starting, starting, ready, ready, gone]),
  );
  expect(steps).toEqual([
    ["build", "done", "The build succeeded."],
    ["probe", "done", "Connected and ready: main."],
    ["delete", "done", "The workspace is deleted."],
  ]);
  expect(ok).toBe(true);
  expect(sentOf(sent)).toEqual([CREATE, DELETE]);
  expect(sent[0]?.body).toMatchObject({ template_version_id: "v", ttl_ms: 3_600_000 });
  expect(sent[1]?.body).toMatchObject({ transition: "delete" });
});

it("deletes what a failed build left", async () => {
  const { ok, steps, sent } = await run(
    server([workspace("failed"), workspace("failed"), workspace("succeeded")]),
  );
  expect(steps).toEqual([
    ["build", "failed", "no capacity"],
    ["probe", "skipped", ""],
    ["delete", "done", "The workspace is deleted."],
  ]);
  expect([ok, sentOf(sent)]).toEqual([false, [CREATE, DELETE]]);
});

it("cancels the build before the deletion when it is stopped", async () => {
  const stop = new AbortController();
  stop.abort();
  const { steps, sent } = await run(
    server([workspace("running"), workspace("running"), workspace("canceled"), gone]),
    stop.signal,
  );
  expect(steps.map(([step, state]) => [step, state])).toEqual([
    ["build", "failed"],
    ["probe", "skipped"],
    ["delete", "done"],
  ]);
  expect(sentOf(sent)).toEqual([CREATE, "PATCH /api/v2/workspacebuilds/b/cancel", DELETE]);
});

it("says that the deletion failed", async () => {
  const ready = workspace("succeeded");
  const { ok, steps } = await run(
    server([ready], { [DELETE]: new Refusal(403, "You may not delete it.") }),
  );
  expect(steps.at(-1)).toEqual(["delete", "failed", "You may not delete it."]);
  expect(ok).toBe(false);
});

it("deletes nothing when nothing was created", async () => {
  const { steps, sent } = await run(server([], { [CREATE]: new Refusal(400, "No such version.") }));
  expect(steps).toEqual([
    ["build", "failed", "No such version."],
    ["probe", "skipped", ""],
    ["delete", "skipped", ""],
  ]);
  expect(sentOf(sent)).toEqual([CREATE]);
});

it.each([
  [{}, null],
  [{ status: "connecting" }, undefined],
  [{ lifecycle_state: "starting" }, undefined],
  [{ status: "timeout" }, "main did not connect within its time"],
  [{ status: "disconnected" }, "main disconnected"],
  [{ lifecycle_state: "start_error" }, "main: a startup script failed"],
  [{ lifecycle_state: "start_timeout" }, "main: a startup script exceeded its time"],
  [{ apps: [{ slug: "web", health: "initializing" }] }, undefined],
  [{ apps: [{ slug: "web", health: "unhealthy" }] }, "main: web is not healthy"],
  [{ apps: [{ slug: "web", health: "disabled" }] }, null],
])("verdict on an agent with %j is %j", (changes, verdict) =>
  expect(problemOf(agent(changes) as unknown as WorkspaceAgent)).toBe(verdict),
);

it("asks for required values before the test", async () => {
  const page = visit(
    [
      {
        path: "/",
        element: (
          <TestRunDialog
            template={{ name: "box", display_name: "" } as Template}
            version={{ id: "v", name: "v1" } as TemplateVersion}
            onClose={() => undefined}
          />
        ),
      },
    ],
    "/",
    server([workspace("succeeded"), workspace("succeeded"), workspace("succeeded"), gone], {
      "GET /api/v2/templateversions/v/rich-parameters": [
        { name: "region", required: true, default_value: "" },
        { name: "size", required: false, default_value: "small" },
      ],
    }),
  );
  const dialog = within(await screen.findByRole("dialog", { name: "Test v1" }));
  const field = await dialog.findByLabelText("region");
  const start = dialog.getByRole("button", { name: "Start the test" });
  expect(start).toBeDisabled();
  await userEvent.type(field, "eu");
  await userEvent.click(start);
  expect(await dialog.findByText("The test passed.")).toBeVisible();
  expect(dialog.queryByRole("link")).toBeNull();
  expect(page.sent[0]?.body).toMatchObject({
    rich_parameter_values: [{ name: "region", value: "eu" }],
  });
  await waitFor(() => expect(dialog.getByRole("button", { name: "Test again" })).toBeEnabled());
});
