// The list changes while a user works with it: each start and stop reorders it, and rows are added
// and removed.
import { focusManager } from "@tanstack/react-query";
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { afterEach, expect, it } from "vitest";

import type { AuthorizationCheck } from "../../api/types";
import { SignedIn } from "../../test/world";
import { Refusal, visit } from "../../test/world";
import { WorkspacesPage } from "./WorkspacesPage";

const AT = "2026-01-01T00:00:00Z";
const workspace = (name: string, status = "stopped") => ({
  id: name,
  name,
  owner_id: "somebody",
  owner_name: "ben",
  organization_id: "o",
  organization_name: "org",
  template_id: "t",
  template_name: "box",
  template_display_name: "Box",
  template_icon: "",
  health: { healthy: true },
  latest_build: {
    id: `build of ${name}`,
    status,
    transition: "start",
    created_at: AT,
    resources: [],
    template_version_id: "v",
    job: { id: "j", status: "succeeded" },
  },
});
type Row = ReturnType<typeof workspace>;

afterEach(() => focusManager.setFocused(undefined));

/**
 * The page with a list that the test can change; permission checks are answered while `answering`.
 */
async function open(...rows: Row[]) {
  const world = { list: rows, answering: true, questions: 0, refused: "", denied: "" };
  const page = visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ path: "/workspaces", Component: WorkspacesPage }],
      },
    ],
    "/workspaces",
    {
      "GET /api/v2/users/me": {
        id: "me",
        username: "ana",
        name: "",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/organizations": [],
      "GET /api/v2/templates": [],
      "GET /api/v2/regions": { regions: [] },
      "GET /api/v2/applications/host": { host: "" },
      "GET /api/v2/workspaces": () => ({ workspaces: world.list, count: world.list.length }),
      "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) => {
        const ofRows = Object.values(checks).some(
          (check) => check.object.resource_id !== undefined,
        );
        if (ofRows) world.questions += 1;
        return ofRows && !world.answering
          ? new Promise(() => undefined)
          : Object.fromEntries(
              Object.entries(checks).map(([name, check]) => [
                name,
                world.denied === "" || check.object.resource_id !== world.denied,
              ]),
            );
      },
      ...Object.fromEntries(
        ["x", "y", "z"].map((id) => [
          `POST /api/v2/workspaces/${id}/builds`,
          () => (world.refused === id ? new Refusal(409, "A build is active.") : {}),
        ]),
      ),
    },
  );
  if (rows.length > 0) await screen.findByRole("table", { name: "Workspaces" });
  else await screen.findByText("No workspaces yet");
  /** The answer of the next refresh. */
  const move = async (...next: Row[]) => {
    world.list = next;
    act(() => {
      focusManager.setFocused(false);
      focusManager.setFocused(true);
    });
    await waitFor(() =>
      expect(
        screen
          .getAllByRole("checkbox", { name: /^Select [xyz]$/, hidden: true })
          .map((box) => box.getAttribute("aria-label")),
      ).toEqual(next.map((row) => `Select ${row.name}`)),
    );
  };
  return { world, page, move };
}

async function choose(names: readonly string[], batch: string) {
  for (const name of names)
    await userEvent.click(await screen.findByRole("checkbox", { name: `Select ${name}` }));
  await waitFor(() => expect(screen.getByRole("button", { name: batch })).toBeEnabled());
}

it("checks no permissions again after reordering", async () => {
  const { world, move } = await open(workspace("x"), workspace("y"));
  await choose(["x"], "Delete…");
  const before = world.questions;
  await move(workspace("y", "running"), workspace("x"));
  expect(screen.getByRole("button", { name: "Delete…" })).toBeEnabled();
  expect(world.questions).toBe(before);
});

it("keeps other rows' permissions while checking a new one", async () => {
  const { world, move } = await open(workspace("x"), workspace("y"));
  await choose(["x"], "Delete…");
  world.answering = false;
  await move(workspace("z"), workspace("y"), workspace("x"));
  expect(screen.getByRole("button", { name: "Delete…" })).toBeEnabled();
  await userEvent.click(screen.getByRole("button", { name: "Actions for y" }));
  expect(await screen.findByRole("menuitem", { name: "Delete…" })).toBeVisible();
  await userEvent.keyboard("{Escape}");
  await userEvent.click(screen.getByRole("button", { name: "Actions for z" }));
  await screen.findByRole("menu");
  expect(screen.queryByRole("menuitem", { name: "Delete…" })).toBeNull();
});

it("acts on exactly the workspaces in the dialog", async () => {
  const { world, page, move } = await open(
    workspace("x"),
    workspace("y"),
    workspace("z", "running"),
  );
  await choose(["x", "y", "z"], "Start…");
  await userEvent.click(screen.getByRole("button", { name: "Start…" }));
  expect(await screen.findByRole("dialog", { name: "Start 2 workspaces?" })).toHaveTextContent(
    "1 of the selected is skipped",
  );
  world.answering = false;
  // Behind the dialog one workspace was stopped and one left the list.
  await move(workspace("z"), workspace("x"));
  expect(screen.getByRole("dialog", { name: "Start 2 workspaces?" })).toHaveTextContent(
    "1 of the selected is skipped",
  );
  await userEvent.click(screen.getByRole("button", { name: "Start 2" }));
  await waitFor(() =>
    expect(page.sent).toEqual(
      ["x", "y"].map((id) => ({
        method: "POST",
        path: `/api/v2/workspaces/${id}/builds`,
        body: expect.objectContaining({ transition: "start" }) as unknown,
      })),
    ),
  );
});

const builds = (...ids: string[]) =>
  ids.map((id) => ({
    method: "POST",
    path: `/api/v2/workspaces/${id}/builds`,
    body: expect.objectContaining({ transition: "delete" }) as unknown,
  }));

it("keeps the dialog open after all rows are gone", async () => {
  const { page, move } = await open(workspace("x"), workspace("y"));
  await choose(["x"], "Delete…");
  await userEvent.click(screen.getByRole("button", { name: "Delete…" }));
  await userEvent.type(await screen.findByRole("textbox"), "del");
  await move(workspace("y"));
  await userEvent.type(screen.getByRole("textbox"), "ete");
  await userEvent.click(screen.getByRole("button", { name: "Delete 1" }));
  await waitFor(() => expect(page.sent).toEqual(builds("x")));
  expect(screen.queryByRole("toolbar")).toBeNull();
});

it("keeps failed workspaces selected, by name", async () => {
  const { world } = await open(workspace("x"), workspace("y"));
  world.refused = "y";
  await choose(["x", "y"], "Start…");
  await userEvent.click(screen.getByRole("button", { name: "Start…" }));
  await userEvent.click(await screen.findByRole("button", { name: "Start 2" }));
  expect(await screen.findByText("1 selected")).toBeVisible();
  expect(screen.getByRole("checkbox", { name: "Select y" })).toBeChecked();
  expect(screen.getByRole("checkbox", { name: "Select x" })).not.toBeChecked();
});

it("skips workspaces that are building or not permitted", async () => {
  const { world, page } = await open();
  world.denied = "y";
  world.list = [
    workspace("x"),
    workspace("y"),
    {
      ...workspace("z"),
      latest_build: { ...workspace("z").latest_build, job: { id: "j", status: "running" } },
    },
  ];
  act(() => {
    focusManager.setFocused(false);
    focusManager.setFocused(true);
  });
  await choose(["x", "y", "z"], "Delete…");
  await userEvent.click(screen.getByRole("button", { name: "Delete…" }));
  expect(await screen.findByRole("dialog", { name: "Delete 1 workspace?" })).toHaveTextContent(
    "2 of the selected are skipped",
  );
  await userEvent.type(screen.getByRole("textbox"), "delete");
  await userEvent.click(screen.getByRole("button", { name: "Delete 1" }));
  await waitFor(() => expect(page.sent).toEqual(builds("x")));
});

it("clears the selection with a new search", async () => {
  await open(workspace("x"), workspace("y"));
  await choose(["x"], "Delete…");
  await userEvent.click(screen.getByRole("button", { name: /^Filters/ }));
  await userEvent.click(await screen.findByRole("menuitem", { name: /Running workspaces/ }));
  await waitFor(() => expect(screen.queryByRole("toolbar")).toBeNull());
  expect(screen.getByRole("checkbox", { name: "Select x" })).not.toBeChecked();
});

it("keeps the selection when the search is repeated", async () => {
  await open(workspace("x"), workspace("y"));
  await choose(["x"], "Delete…");
  await userEvent.type(screen.getByRole("searchbox", { name: "Search workspaces" }), "{Enter}");
  expect(screen.getByRole("checkbox", { name: "Select x" })).toBeChecked();
});
