import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { SignedIn } from "../../../test/world";
import { FakeSocket, visit } from "../../../test/world";
import { BuildPage } from "./BuildPage";

const build = {
  id: "b1",
  build_number: 1,
  status: "running",
  transition: "start",
  reason: "initiator",
  initiator_name: "ana",
  template_version_name: "first",
  created_at: "2026-01-01T00:00:00Z",
  resources: [],
  job: {
    id: "j1",
    status: "succeeded",
    worker_id: "w",
    created_at: "2026-01-01T00:00:00Z",
    started_at: "2026-01-01T00:00:01Z",
    completed_at: "2026-01-01T00:00:09Z",
  },
};
const running = {
  ...build,
  id: "b2",
  build_number: 2,
  status: "starting",
  job: { ...build.job, id: "j2", status: "running", completed_at: undefined },
};

const waiting = {
  ...running,
  id: "b3",
  build_number: 3,
  status: "pending",
  job: {
    ...running.job,
    id: "j3",
    status: "pending",
    queue_position: 1,
    queue_size: 1,
    worker_id: undefined,
  },
};

function open(number: number, latest: typeof build | typeof running | typeof waiting) {
  const workspace = {
    id: "w1",
    name: "dev",
    owner_name: "ana",
    owner_id: "u",
    organization_id: "o",
    template_allow_user_cancel_workspace_jobs: true,
    latest_build: latest,
  };
  return visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ path: "/:owner/:workspace/builds/:number", Component: BuildPage }],
      },
    ],
    `/@ana/dev/builds/${number}`,
    {
      "GET /api/v2/users/me": {
        id: "u",
        username: "ana",
        name: "",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/users/ana/workspace/dev": workspace,
      "GET /api/v2/users/ana/workspace/dev/builds/1": build,
      "GET /api/v2/users/ana/workspace/dev/builds/2": running,
      "GET /api/v2/workspaces/w1/builds": [build],
      "GET /api/v2/organizations/o/provisionerjobs/j1/why": {
        verdict: "not_waiting",
        summary: "",
        worker_name: "vm-2",
        daemons: [],
        remedy: null,
      },
      "PATCH /api/v2/workspacebuilds/b2/cancel": {},
      "GET /api/v2/users/ana/workspace/dev/builds/3": waiting,
      "GET /api/v2/organizations/o/provisionerjobs/j3/why": {
        verdict: "no_match",
        summary: "No provisioner has the tag gpu=yes.",
        daemons: [],
        remedy: { command: "coder provisioner start --tag gpu=yes", notes: [] },
      },
    },
  );
}

it("shows the result and the provisioner of a finished build", async () => {
  open(1, build);
  expect(await screen.findAllByText("Succeeded")).toHaveLength(2); // in the header, and in the list of builds
  expect(await screen.findByText("vm-2")).toBeVisible();
});

it("cancels a running build without any log", async () => {
  const page = open(2, running);
  await userEvent.click(await screen.findByRole("button", { name: "Cancel" }));
  await waitFor(() =>
    expect(page.sent).toEqual([
      { method: "PATCH", path: "/api/v2/workspacebuilds/b2/cancel", body: undefined },
    ]),
  );
});

it("offers no cancel on an older build", async () => {
  open(1, running);
  expect(await screen.findByText("vm-2")).toBeVisible();
  expect(screen.queryByRole("button", { name: "Cancel" })).toBeNull();
});

it("explains why a build waits", async () => {
  open(3, waiting);
  expect(await screen.findByText("No provisioner has the tag gpu=yes.")).toBeVisible();
  expect(screen.getByText("coder provisioner start --tag gpu=yes")).toBeVisible();
});

it("keeps content and focus while the build progresses", async () => {
  const page = open(2, running);
  const raw = await screen.findByRole("link", { name: "Raw log" });
  const before = page.requests.filter((request) => request.endsWith("/builds/2")).length;
  raw.focus();
  await act(async () =>
    FakeSocket.to("/workspaces/w1/watch")?.says({
      type: "data",
      data: {
        id: "w1",
        name: "dev",
        owner_name: "ana",
        owner_id: "u",
        organization_id: "o",
        latest_build: {
          ...running,
          status: "canceling",
          job: { ...running.job, status: "canceling" },
        },
      },
    }),
  );
  expect(screen.getByRole("link", { name: "Raw log" })).toBe(raw);
  await waitFor(() =>
    expect(page.requests.filter((request) => request.endsWith("/builds/2"))).toHaveLength(
      before + 1,
    ),
  );
  expect(raw).toHaveFocus();
});

it("shows the queue position", async () => {
  open(3, waiting);
  expect(await screen.findByText("Position 1 of 1 in the queue.")).toBeVisible();
  await act(async () =>
    FakeSocket.to("/workspaces/w1/watch")?.says({
      type: "data",
      data: {
        id: "w1",
        name: "dev",
        owner_name: "ana",
        owner_id: "u",
        organization_id: "o",
        latest_build: { ...waiting, job: { ...waiting.job, queue_position: 2, queue_size: 5 } },
      },
    }),
  );
  expect(await screen.findByText("Position 2 of 5 in the queue.")).toBeVisible();
});
