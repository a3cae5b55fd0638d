import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { NO_WORKSPACES, useMayCreateWorkspace } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { visit } from "../../test/world";
import { Menu } from "../../ui/Menu";
import { Banners } from "./Banners";
import { Duplicate } from "./Duplicate";

const workspace = {
  id: "w",
  name: "dev",
  organization_id: "o",
  organization_name: "org",
  template_id: "t",
  template_name: "docker",
  latest_build: {
    id: "b",
    status: "deleted",
    transition: "delete",
    resources: [],
    template_version_id: "v",
    job: { id: "j" },
  },
} as unknown as Workspace;
const answers = (create: boolean) => ({
  "POST /api/v2/authcheck": ({ checks }: { checks: object }) =>
    Object.fromEntries(Object.keys(checks).map((name) => [name, create])),
  "GET /api/v2/templates/t": {},
});

function InMenu() {
  const mayCreate = useMayCreateWorkspace(workspace.organization_id);
  return (
    <Menu trigger={<button type="button">{mayCreate === undefined ? "Not yet" : "Open"}</button>}>
      <Duplicate workspace={workspace} mayCreate={mayCreate} />
    </Menu>
  );
}

it("offers a duplicate to users who may create workspaces", async () => {
  visit([{ path: "/", Component: InMenu }], "/", answers(true));
  await userEvent.click(await screen.findByRole("button", { name: "Open" }));
  expect(await screen.findByRole("menuitem", { name: "Duplicate…" })).toHaveAttribute(
    "href",
    expect.stringContaining("/templates/org/docker/workspace?version=v"),
  );
});

it("explains to other users why not", async () => {
  visit([{ path: "/", Component: InMenu }], "/", answers(false));
  await userEvent.click(await screen.findByRole("button", { name: "Open" }));
  expect(await screen.findByText(NO_WORKSPACES)).toBeVisible();
  expect(screen.queryByRole("menuitem")).toBeNull();
});

it.each([
  [true, "link", "Create a similar workspace"],
  [false, "text", NO_WORKSPACES],
])("does the same for a deleted workspace: %s", async (may, kind, message) => {
  visit([{ path: "/", element: <Banners workspace={workspace} /> }], "/", answers(may));
  expect(await screen.findByText(message)).toBeVisible();
  expect(screen.queryAllByRole("link")).toHaveLength(kind === "link" ? 1 : 0);
});
