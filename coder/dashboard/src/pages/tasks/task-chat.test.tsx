import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Task } from "../../api/types";
import { visit } from "../../test/world";
import { TaskChat } from "./TaskChat";

const task = {
  id: "t",
  name: "mend-it",
  organization_id: "o",
  owner_id: "me",
  owner_name: "ana",
  workspace_id: "w",
  status: "active",
  initial_prompt: "Mend it",
  created_at: "2026-01-01T00:00:00Z",
} as Task;

it("keeps text typed while a message is sent", async () => {
  let answer = (): void => undefined;
  const page = visit(
    [{ path: "/", element: <TaskChat task={task} owner="ana" name="mend-it" /> }],
    "/",
    {
      "GET /api/v2/tasks/ana/mend-it/logs": { logs: [], snapshot: false },
      "POST /api/v2/tasks/ana/mend-it/send": () =>
        new Promise((done) => {
          answer = () => done({});
        }),
    },
  );
  const field = await screen.findByLabelText("Message to the agent");
  await waitFor(() => expect(field).toBeEnabled());
  await userEvent.type(field, "First{Enter}");
  await userEvent.type(field, " and second");
  await act(async () => answer());
  expect(field).toHaveValue("First and second");
  await userEvent.clear(field);
  await userEvent.type(field, "Third{Enter}");
  await waitFor(() => expect(page.sent).toHaveLength(2));
  await act(async () => answer());
  await waitFor(() => expect(field).toHaveValue(""));
});
