import { act, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace } from "../../api/types";
import { FakeSocket, visit } from "../../test/world";
import { Banners } from "./Banners";

const workspace = (status: string, job: object) => ({ id: "w", organization_id: "o", template_id: "t", latest_build: { id: "b", status, transition: "start", resources: [], job: { id: "j", ...job } } }) as unknown as Workspace;
const VERSION = "GET /api/v2/templateversions/v2";
const open = (status: string, job: object) => visit([{ path: "/", element: <Banners workspace={workspace(status, job)} /> }], "/", { "GET /api/v2/templates/t": {}, "POST /api/v2/workspaces/w/builds": {} });

it("says that a build was cancelled, and offers it again", async () => {
  const page = open("canceled", { status: "canceled", error: "canceled" });
  await userEvent.click(await screen.findByRole("button", { name: "Start again" }));
  expect(page.sent.map((one) => one.path)).toEqual(["/api/v2/workspaces/w/builds"]);
  expect(screen.queryByText("The last build failed.")).toBeNull();
});

it("says of a failed build what its log calls an error", async () => {
  open("failed", { status: "failed", error: "exit status 1" });
  expect(await screen.findByText("exit status 1")).toBeVisible();
  await act(async () => FakeSocket.to("/workspacebuilds/b/logs")?.says([{ id: 1, log_level: "info", output: "Init" }, { id: 2, log_level: "error", output: "Error: no such image" }]));
  expect(await screen.findByText("Error: no such image")).toBeVisible();
  expect(screen.queryByText("Init")).toBeNull();
});

it("says which version is newer and what its author wrote about it", async () => {
  const outdated = { ...workspace("running", { status: "succeeded" }), outdated: true, template_active_version_id: "v2" };
  visit([{ path: "/", element: <Banners workspace={outdated} /> }], "/", { "GET /api/v2/templates/t": {}, [VERSION]: { name: "kind_mesa4", message: "An app" } });
  expect(await screen.findByText("kind_mesa4")).toBeVisible();
  expect(screen.getByText(/: An app/)).toBeVisible();
});
