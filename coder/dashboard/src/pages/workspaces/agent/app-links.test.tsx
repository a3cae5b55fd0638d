import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { beforeEach, expect, it, vi } from "vitest";

import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../../../api/types";
import { SignedIn } from "../../../test/world";
import { visit } from "../../../test/world";
import { AppLinks } from "./AppLinks";

const app = (slug: string, more: Partial<WorkspaceApp>) =>
  ({
    id: slug,
    slug,
    display_name: slug,
    icon: "",
    url: "http://localhost:1",
    external: false,
    subdomain: false,
    hidden: false,
    health: "disabled",
    group: "",
    open_in: "tab",
    ...more,
  }) as WorkspaceApp;
const desktop = { external: true, url: "jetbrains://open?token=$SESSION_TOKEN" } as const;
const workspace = { name: "lab", owner_name: "ana", owner_id: "u" } as Workspace;
const showIn = (where: Workspace, ...apps: WorkspaceApp[]) =>
  visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          {
            path: "/",
            element: (
              <AppLinks workspace={where} agent={{ name: "main", apps } as WorkspaceAgent} />
            ),
          },
        ],
      },
    ],
    "/",
    {
      "GET /api/v2/users/me": {
        id: "u",
        username: "ana",
        name: "",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/applications/host": { host: "" },
      "POST /api/v2/users/me/keys": { key: "fresh-key" },
    },
  );
const show = (...apps: WorkspaceApp[]) => showIn(workspace, ...apps);

const navigated = vi.fn();
beforeEach(() => {
  navigated.mockReset();
  vi.stubGlobal("open", navigated);
  Object.defineProperty(window, "location", {
    configurable: true,
    value: Object.assign(new URL("http://localhost:3000/"), { assign: navigated }),
  });
});

it("opens a page with a plain link", async () => {
  show(app("page", {}));
  expect(await screen.findByRole("link", { name: "page" })).toHaveAttribute(
    "href",
    "/@ana/lab.main/apps/page/",
  );
});

// In a group as well as ungrouped: how it opens depends on the application.
it.each([
  ["alone", ""],
  ["in a group", "Tools"],
])("%s, creates a token for a desktop program on opening", async (_, group) => {
  const page = show(app("ide", { ...desktop, group }));
  if (group) await userEvent.click(await screen.findByRole("button", { name: group }));
  expect(page.sent).toEqual([]);
  await userEvent.click(await screen.findByRole(group ? "menuitem" : "link", { name: "ide" }));
  await waitFor(() => expect(navigated).toHaveBeenCalledWith("jetbrains://open?token=fresh-key"));
});

it("passes no token to applications of another user's workspace", async () => {
  const page = showIn({ ...workspace, owner_name: "ben", owner_id: "v" }, app("ide", desktop));
  expect(await screen.findByRole("link", { name: "ide" })).toHaveAttribute(
    "href",
    "jetbrains://open?token=",
  );
  expect(page.sent).toEqual([]);
});

it.each([
  ["alone", ""],
  ["in a group", "Tools"],
])("%s, opens a slim window if the template says so", async (_, group) => {
  show(app("small", { open_in: "slim-window", group }));
  if (group) await userEvent.click(await screen.findByRole("button", { name: group }));
  await userEvent.click(await screen.findByRole(group ? "menuitem" : "link", { name: "small" }));
  expect(navigated).toHaveBeenCalledWith(
    "/@ana/lab.main/apps/small/",
    "app-small",
    "width=900,height=600",
  );
});

it.each([
  ["alone", ""],
  ["in a group", "Tools"],
])("%s, marks an unhealthy application, which can be opened", async (_, group) => {
  show(app("broken", { health: "unhealthy", group }), app("fine", { health: "healthy", group }));
  expect((await screen.findByText(/health check/)).textContent).toBe(
    "broken does not respond to its health check. You can still open it.",
  );
  if (group) await userEvent.click(await screen.findByRole("button", { name: group }));
  const link = await screen.findByRole(group ? "menuitem" : "link", { name: /^broken/ });
  expect(link).toHaveAttribute("href", "/@ana/lab.main/apps/broken/");
  expect(link).not.toHaveAttribute("data-disabled");
});

it("shows no note for healthy applications", async () => {
  show(app("fine", { health: "healthy" }), app("unchecked", { health: "disabled" }));
  await screen.findByRole("link", { name: "fine" });
  expect(screen.queryByText(/health check/)).toBeNull();
});
