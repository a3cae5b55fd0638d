import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace } from "../../api/types";
import { FakeSocket, Refusal, visit, type Answers } from "../../test/world";
import { Toasts } from "../../ui/toast";
import { Banners } from "./Banners";

const workspace = (status: string, job: object) =>
  ({
    id: "w",
    name: "dev",
    owner_name: "ana",
    organization_id: "o",
    template_id: "t",
    latest_build: { id: "b", status, transition: "start", resources: [], job: { id: "j", ...job } },
  }) as unknown as Workspace;
const VERSION = "GET /api/v2/templateversions/v2";
const open = (status: string, job: object, parameters: object[] = []) =>
  visit([{ path: "/", element: <Banners workspace={workspace(status, job)} /> }], "/", {
    "GET /api/v2/templates/t": {},
    "POST /api/v2/workspaces/w/builds": {},
    "GET /api/v2/workspacebuilds/b/parameters": parameters,
  });

it("shows a canceled build and offers it again", async () => {
  const page = open("canceled", { status: "canceled", error: "canceled" });
  await userEvent.click(await screen.findByRole("button", { name: "Start again" }));
  expect(page.sent.map((request) => request.path)).toEqual(["/api/v2/workspaces/w/builds"]);
  expect(screen.queryByText("The last build failed")).toBeNull();
});

it("takes a canceled build that ended with an error for no failure", async () => {
  const canceled_at = "2026-01-01T00:00:00Z";
  open("failed", { status: "failed", error: "terraform: interrupted", canceled_at });
  expect(await screen.findByText("Last build canceled: start")).toBeVisible();
  expect(screen.getByText("terraform: interrupted")).toBeVisible();
  expect(screen.queryByText("The last build failed")).toBeNull();
});

it("shows a failed build's log errors", async () => {
  open("failed", { status: "failed", error: "exit status 1" });
  expect(await screen.findByText("exit status 1")).toBeVisible();
  await act(async () =>
    FakeSocket.to("/workspacebuilds/b/logs")?.says([
      { id: 1, log_level: "info", output: "Init" },
      { id: 2, log_level: "error", output: "Error: no such image" },
    ]),
  );
  expect(await screen.findByText("Error: no such image")).toBeVisible();
  expect(screen.queryByText("Init")).toBeNull();
});

it("omits quoted template lines among the first errors", async () => {
  open("failed", { status: "failed", error: "terraform plan: exit status 1" });
  await screen.findByText("terraform plan: exit status 1");
  const lines = [
    "Error: Resource precondition failed",
    "on main.tf line 12:",
    "  12:   condition = var.a != 1",
    "    ├────────────────",
    "    │ var.a is 1",
    "",
    "Choose another region.",
  ];
  await act(async () =>
    FakeSocket.to("/workspacebuilds/b/logs")?.says(
      lines.map((output, index) => ({ id: index + 1, log_level: "error", output })),
    ),
  );
  const list = await screen.findByRole("list", { name: "First errors of the log" });
  expect([...list.children].map((line) => line.textContent)).toEqual([
    "Error: Resource precondition failed",
    "on main.tf line 12:",
    "Choose another region.",
  ]);
});

it.each([
  ["2026-01-01T00:00:00Z", /changes may have been applied/],
  [undefined, /The build had not started/],
])("explains a build canceled after its start at %s", async (started_at, words) => {
  open("canceled", { status: "canceled", error: "canceled", started_at });
  expect(await screen.findByText(words)).toBeVisible();
});

it("links from a failed start to the parameters", async () => {
  open("failed", { status: "failed", error: "The region has no room." }, [
    { name: "region", value: "north" },
  ]);
  expect(await screen.findByRole("link", { name: "Change parameters" })).toHaveAttribute(
    "href",
    "/@ana/dev/settings/parameters",
  );
});

it("offers no parameters if there are none", async () => {
  const page = open("failed", { status: "failed", error: "exit status 1" });
  await waitFor(() => expect(page.requests).toContain("GET /api/v2/workspacebuilds/b/parameters"));
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(screen.getByRole("button", { name: "Retry" })).toBeVisible();
  expect(screen.queryByRole("link", { name: "Change parameters" })).toBeNull();
});

it("shows the newer version and its message", async () => {
  const outdated = {
    ...workspace("running", { status: "succeeded" }),
    outdated: true,
    template_active_version_id: "v2",
  };
  visit([{ path: "/", element: <Banners workspace={outdated} /> }], "/", {
    "GET /api/v2/templates/t": {},
    [VERSION]: { name: "kind_mesa4", message: "An app" },
  });
  expect(await screen.findByText("kind_mesa4")).toBeVisible();
  expect(screen.getByText(/: An app/)).toBeVisible();
});

const refused: Answers = {
  "POST /api/v2/workspaces/w/builds": new Refusal(409, "A workspace build is already active."),
  "PUT /api/v2/workspaces/w/dormant": new Refusal(409, "The owner has too many."),
};

it.each([
  [
    workspace("canceled", { status: "canceled", error: "canceled" }),
    "Start again",
    "A workspace build is already active.",
  ],
  [
    workspace("failed", { status: "failed", error: "exit status 1" }),
    "Retry",
    "A workspace build is already active.",
  ],
  [
    { ...workspace("stopped", { status: "succeeded" }), dormant_at: "2026-01-01T00:00:00Z" },
    "Activate",
    "The owner has too many.",
  ],
])("shows why the action failed (%#)", async (shown, button, reason) => {
  visit(
    [
      {
        path: "/",
        element: (
          <>
            <Banners workspace={shown} />
            <Toasts />
          </>
        ),
      },
    ],
    "/",
    { "GET /api/v2/templates/t": {}, "GET /api/v2/workspacebuilds/b/parameters": [], ...refused },
  );
  await userEvent.click(await screen.findByRole("button", { name: button }));
  expect(await screen.findByText(reason)).toBeVisible();
});

it.each([
  [true, 1],
  [false, 0],
  [undefined, 0],
])("offers a debug log if allowed (%s)", async (enable_terraform_debug_mode, offers) => {
  const page = visit(
    [
      {
        path: "/",
        element: (
          <Banners workspace={workspace("failed", { status: "failed", error: "exit status 1" })} />
        ),
      },
    ],
    "/",
    {
      "GET /api/v2/templates/t": {},
      "GET /api/v2/workspacebuilds/b/parameters": [],
      "GET /api/v2/deployment/config": { config: { enable_terraform_debug_mode }, options: [] },
    },
  );
  await screen.findByRole("button", { name: "Retry" });
  await waitFor(() => expect(page.requests).toContain("GET /api/v2/deployment/config"));
  await waitFor(() => expect(page.fetching()).toBe(0));
  expect(screen.queryAllByRole("button", { name: "Retry with debug log" })).toHaveLength(offers);
});
