import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { FakeSocket, visit } from "../../../test/world";
import { Containers } from "./Containers";

const agent = { id: "a", name: "main", parent_id: null } as WorkspaceAgent;
const workspace = {
  name: "lab",
  owner_name: "ana",
  latest_build: { resources: [{ type: "coder_devcontainer" }] },
} as unknown as Workspace;
const container = (status: string, more: object = {}) => ({
  id: "d",
  name: "api",
  workspace_folder: "/home/coder/api",
  status,
  dirty: false,
  container: { name: "api-1", ports: [{ port: 80, host_port: 32768, network: "tcp" }] },
  ...more,
});
const PATH = "/api/v2/workspaceagents/a/containers";
const open = (answer: object, { mayConnect = true, warnings = [] as string[] } = {}) =>
  visit(
    [
      {
        path: "/",
        element: <Containers workspace={workspace} agent={agent} mayConnect={mayConnect} />,
      },
    ],
    "/",
    {
      [`GET ${PATH}`]: { devcontainers: [answer], containers: [], warnings },
      "GET /api/v2/applications/host": { host: "*.apps.test" },
      [`POST ${PATH}/devcontainers/d/recreate`]: {},
      [`DELETE ${PATH}/devcontainers/d`]: {},
    },
  );

it("shows the links of a running container", async () => {
  open(container("running"));
  expect(await screen.findByText("Running")).toBeVisible();
  expect(screen.getByRole("link", { name: "Terminal in api" })).toHaveAttribute(
    "href",
    "/@ana/lab.main/terminal?container=api-1",
  );
  expect(await screen.findByRole("link", { name: "Port 80" })).toHaveAttribute(
    "href",
    "http://32768--main--lab--ana.apps.test/",
  );
});

it("shows why a container failed, and rebuilds it", async () => {
  const page = open(
    container("error", { container: undefined, error: "no such image", dirty: true }),
    {
      warnings: ["docker is slow"],
    },
  );
  expect(await screen.findByText("no such image")).toBeVisible();
  expect(screen.getByText("docker is slow")).toBeVisible();
  expect(screen.getByText("Outdated")).toBeVisible();
  expect(screen.queryByRole("link")).toBeNull();
  await userEvent.click(screen.getByRole("button", { name: "Start api" }));
  await waitFor(() =>
    expect(page.sent).toEqual([
      { method: "POST", path: `${PATH}/devcontainers/d/recreate`, body: undefined },
    ]),
  );
});

it("follows changes without interrupting", async () => {
  open(container("stopped"));
  await screen.findByText("Stopped");
  await waitFor(() => expect(FakeSocket.to("/containers/watch")).toBeDefined());
  act(() =>
    FakeSocket.to("/containers/watch")?.says({
      devcontainers: [container("starting")],
      containers: [],
    }),
  );
  expect(await screen.findByText("Starting")).toBeVisible();
  expect(screen.getByRole("button", { name: "Rebuild api" })).toBeDisabled();
});

it("confirms deletion with its consequences", async () => {
  const page = open(container("running"));
  await userEvent.click(await screen.findByRole("button", { name: "Delete container api" }));
  expect(page.sent).toEqual([]);
  await userEvent.click(
    within(await screen.findByRole("dialog")).getByRole("button", { name: "Delete" }),
  );
  await waitFor(() =>
    expect(page.sent).toEqual([
      { method: "DELETE", path: `${PATH}/devcontainers/d`, body: undefined },
    ]),
  );
});

it("offers no actions to viewers", async () => {
  open(container("running"), { mayConnect: false });
  expect(await screen.findByText("Running")).toBeVisible();
  expect(screen.queryByRole("button")).toBeNull();
  expect(screen.queryByRole("link")).toBeNull();
});
