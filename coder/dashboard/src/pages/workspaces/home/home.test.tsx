import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it, vi } from "vitest";

import type { APIKeyWithOwner, Workspace, WorkspaceAgentMetadata } from "../../../api/types";
import { SignedIn, visit } from "../../../test/world";
import { HomePage } from "./HomePage";
import { branchOf, expiringTokens, problemsSince, recentWorkspaces, yesterday } from "./home";

const NOW = Date.parse("2026-11-29T12:00:00Z");
const hours = (count: number) => new Date(NOW + count * 3_600_000).toISOString();

function workspace(name: string, changes: Partial<Workspace> = {}, build: object = {}): Workspace {
  return {
    id: name,
    name,
    owner_id: "ana",
    owner_name: "ana",
    template_name: "box",
    template_icon: "",
    last_used_at: hours(-1),
    outdated: false,
    health: { healthy: true },
    dormant_at: null,
    organization_id: "o",
    ...changes,
    latest_build: {
      id: `build of ${name}`,
      status: "running",
      created_at: hours(-100),
      job: { status: "succeeded", error: "" },
      resources: [],
      ...build,
    },
  } as unknown as Workspace;
}

describe("selection", () => {
  it("shows the three workspaces used last, without dormant ones", () => {
    const mine = [
      workspace("a", { last_used_at: hours(-9) }),
      workspace("b", { last_used_at: hours(-1) }),
      workspace("c", { last_used_at: hours(-5) }),
      workspace("d", { last_used_at: "0001-01-01T00:00:00Z" }, { created_at: hours(-2) }),
      workspace("e", { last_used_at: hours(0), dormant_at: hours(-1) }),
    ];
    expect(recentWorkspaces(mine).map((item) => item.name)).toEqual(["b", "d", "c"]);
  });

  it("lists failures since yesterday only", () => {
    const failed = { status: "failed", job: { status: "failed", error: "no quota" } };
    const interrupted = { ...failed, job: { ...failed.job, canceled_at: hours(-2) } };
    const agent = { name: "main", lifecycle_state: "start_error", started_at: hours(-1) };
    const mine = [
      workspace("new", {}, { ...failed, created_at: hours(-20) }),
      workspace("old", {}, { ...failed, created_at: hours(-60) }),
      workspace("script", {}, { resources: [{ agents: [agent] }] }),
      workspace("fine"),
      // For the API it failed: its program ended with an error when the user canceled the build.
      workspace("interrupted", {}, { ...interrupted, created_at: hours(-2) }),
    ];
    expect(
      problemsSince(mine, yesterday(NOW)).map((item) => [
        item.workspace.name,
        item.text,
        item.build,
      ]),
    ).toEqual([
      ["script", "A startup script of main failed.", undefined],
      ["new", "no quota", "build of new"],
    ]);
  });

  it("warns of tokens that expire within a week", () => {
    const token = (token_name: string, left: number) =>
      ({ token_name, expires_at: hours(left) }) as APIKeyWithOwner;
    const all = [token("later", 200), token("soon", 100), token("over", -1), token("next", 2)];
    expect(expiringTokens(all, NOW).map((item) => item.token_name)).toEqual(["next", "soon"]);
  });

  it.each([
    ["branch", "Branch", "main\n", "", "main"],
    ["0_git_branch", "Git", "dev", "", "dev"],
    ["branches_open", "Open", "7", "", null],
    ["branch", "Branch", "main", "exit status 128", null],
  ])("reads a branch from %s", (key, display_name, value, error, expected) => {
    const item = { description: { key, display_name }, result: { value, error } };
    expect(branchOf([item as unknown as WorkspaceAgentMetadata])).toBe(expected);
  });
});

const ANSWERS = {
  "GET /api/v2/users/me": { id: "ana", username: "ana", roles: [], organization_ids: ["o"] },
  "GET /api/v2/users/me/keys/tokens": [],
  "GET /api/v2/notifications/inbox": { notifications: [], unread_count: 2 },
  "GET /api/v2/templates": [],
};
const ROUTES = [
  { element: <SignedIn bare />, children: [{ path: "/home", element: <HomePage /> }] },
];

it("offers three ways to a user without workspaces", async () => {
  visit(ROUTES, "/home", {
    ...ANSWERS,
    "GET /api/v2/workspaces": { workspaces: [], count: 0 },
  });
  expect(await screen.findByRole("heading", { name: "From a template" })).toBeVisible();
  expect(screen.getByRole("link", { name: "Attach a machine" })).toHaveAttribute(
    "href",
    "/workspaces/attach",
  );
  expect(screen.getByRole("link", { name: "Install the CLI" })).toBeVisible();
});

it.each([
  [true, 1],
  [false, 0],
])("with permission %s, leads to the first template", async (allowed, times) => {
  visit(ROUTES, "/home", {
    "POST /api/v2/authcheck": ({ checks }: { checks: object }) =>
      Object.fromEntries(
        Object.keys(checks).map((name) => [name, name !== "createAnyTemplate" || allowed]),
      ),
    "GET /api/v2/users/me": { id: "ana", username: "ana" },
    "GET /api/v2/workspaces": { workspaces: [], count: 0 },
    "GET /api/v2/users/me/keys/tokens": [],
    "GET /api/v2/templates": [],
  });
  await userEvent.click(await screen.findByRole("button", { name: "New workspace" }));
  expect(await screen.findByText("There are no templates yet.")).toBeVisible();
  expect(screen.queryAllByRole("link", { name: "Create a template" })).toHaveLength(times);
});

it("extends the deadline of a recent workspace", async () => {
  vi.useFakeTimers({ now: NOW, toFake: ["Date"] });
  const page = visit(ROUTES, "/home", {
    ...ANSWERS,
    "GET /api/v2/workspaces": {
      workspaces: [workspace("api", { outdated: true }, { deadline: hours(2) })],
      count: 1,
    },
    "PUT /api/v2/workspaces/api/extend": {},
  });
  await userEvent.click(await screen.findByRole("button", { name: "Add 1 hour to deadline" }));
  expect(page.sent).toContainEqual({
    method: "PUT",
    path: "/api/v2/workspaces/api/extend",
    body: { deadline: hours(3) },
  });
  expect(await screen.findByText("An update of its template is available.")).toBeVisible();
  expect(screen.getByText("2 unread messages")).toBeVisible();
  expect(screen.getByText("Nothing failed.")).toBeVisible();
  vi.useRealTimers();
});
