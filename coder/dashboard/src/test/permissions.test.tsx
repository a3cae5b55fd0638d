// An administrator of one organization may have no permissions in the next: controls of an
// organization's page are checked against that organization.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState, type ReactNode } from "react";
import { expect, it } from "vitest";

import { SignedIn } from "./world";
import { CreateWorkspacePage } from "../pages/workspaces/create/CreateWorkspacePage";
import { TemplateLayout } from "../pages/templates/TemplateLayout";
import { RightsOfList } from "../pages/workspaces/rights";
import { RowActions } from "../pages/workspaces/RowActions";
import { WorkspaceActions } from "../pages/workspaces/WorkspaceActions";
import { visit } from "./world";
import { NO_WORKSPACES } from "../api/permissions";
import type { AuthorizationCheck, Workspace } from "../api/types";

const AT = "2026-01-01T00:00:00Z";
const ROUTES = [
  {
    element: <SignedIn bare />,
    children: [
      { path: "/templates/:template", Component: TemplateLayout },
      { path: "/templates/:template/workspace", Component: CreateWorkspacePage },
    ],
  },
];

/**
 * A page of a template of `organization`, for a user who may create workspaces for anyone in "a",
 * and own ones in `own`.
 */
function open(organization: string, own: readonly string[], address: string) {
  const template = {
    id: "t",
    name: "box",
    display_name: "Box",
    description: "",
    icon: "",
    organization_id: organization,
    organization_name: organization,
    active_version_id: "v",
    deprecated: false,
    active_user_count: 1,
    build_time_stats: {},
    updated_at: AT,
    created_by_name: "ben",
  };
  const allowed = ({ object }: AuthorizationCheck) => {
    if (object.resource_type !== "workspace") return false;
    if (object.any_org) return object.owner_id !== "me" || own.length > 0;
    return (
      (object.organization_id === "a" && object.owner_id !== "me") ||
      (object.owner_id === "me" && own.includes(object.organization_id ?? ""))
    );
  };
  return visit(ROUTES, address, {
    "GET /api/v2/users/me": {
      id: "me",
      username: "ana",
      name: "",
      email: "",
      organization_ids: ["a", "b"],
      roles: [],
    },
    "GET /api/v2/organizations": [],
    "GET /api/v2/users": { users: [], count: 0 },
    "GET /api/v2/organizations/default/templates/box": template,
    "GET /api/v2/templateversions/v": {
      id: "v",
      name: "first",
      job: { id: "j", status: "succeeded" },
    },
    "GET /api/v2/templateversions/v/presets": [],
    "GET /api/v2/templateversions/v/external-auth": [],
    "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
      Object.fromEntries(Object.entries(checks).map(([name, check]) => [name, allowed(check)])),
  });
}

it.each([
  { organization: "a", own: [], offered: true },
  { organization: "b", own: ["b"], offered: true },
  { organization: "b", own: [], offered: false },
  { organization: "b", own: ["a"], offered: false },
])(
  "workspace in $organization for an administrator of a with own in $own: $offered",
  async ({ organization, own, offered }) => {
    const page = open(organization, own, "/templates/box");
    if (offered)
      expect(await screen.findByRole("link", { name: "Create workspace" })).toBeVisible();
    else expect(await screen.findByText(NO_WORKSPACES)).toBeVisible();
    await waitFor(() => expect(page.fetching()).toBe(0));
    expect(screen.queryAllByRole("link", { name: "Create workspace" })).toHaveLength(
      offered ? 1 : 0,
    );
  },
);

it.each([
  ["a", 1],
  ["b", 0],
])(
  "administrator of a chooses the owner of a workspace in %s: %i",
  async (organization, fields) => {
    const page = open(organization, ["a", "b"], "/templates/box/workspace");
    expect(await screen.findByLabelText(/^Workspace name/)).toBeVisible();
    await waitFor(() => expect(page.fetching()).toBe(0));
    await waitFor(() => expect(screen.queryAllByLabelText(/^Owner/)).toHaveLength(fields));
  },
);

it("requires an owner if the user may have no own workspace", async () => {
  open("a", [], "/templates/box/workspace");
  expect(
    await screen.findByText(
      "Choose an owner. You cannot have workspaces of your own in this organization.",
    ),
  ).toBeVisible();
  expect(screen.getByTestId("create")).toHaveAttribute("aria-disabled", "true");
});

/**
 * A dormant workspace, and a button that wakes it. No user may "start" a dormant one directly:
 * starting wakes it first.
 */
function dormantWorkspace(shown: (workspace: Workspace) => ReactNode) {
  const workspace = {
    id: "w",
    name: "lab",
    owner_id: "me",
    owner_name: "ana",
    organization_id: "o",
    template_id: "t",
    health: { healthy: true },
    latest_build: {
      id: "b",
      status: "stopped",
      transition: "stop",
      created_at: AT,
      resources: [],
      job: { id: "j", status: "succeeded" },
    },
  };
  let dormant = true;
  function Page() {
    const [at, setAt] = useState<string | null>(AT);
    return (
      <>
        <button
          type="button"
          onClick={() => {
            dormant = false;
            setAt(null);
          }}
        >
          Wake
        </button>
        {shown({ ...workspace, dormant_at: at } as unknown as Workspace)}
      </>
    );
  }
  return visit([{ element: <SignedIn bare />, children: [{ path: "/", Component: Page }] }], "/", {
    "GET /api/v2/users/me": {
      id: "me",
      username: "ana",
      name: "",
      email: "",
      organization_ids: ["o"],
      roles: [],
    },
    "GET /api/v2/workspacebuilds/b/parameters": [],
    "GET /api/v2/regions": { regions: [] },
    "GET /api/v2/applications/host": { host: "" },
    "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
      Object.fromEntries(
        Object.entries(checks).map(([name, { object, action }]) => [
          name,
          !(dormant && object.resource_id === "w" && ["start", "share"].includes(action)),
        ]),
      ),
  });
}

it("lets the owner start and share a dormant workspace", async () => {
  dormantWorkspace((workspace) => <WorkspaceActions workspace={workspace} />);
  expect(await screen.findByRole("button", { name: "Start" })).toBeEnabled();
  await userEvent.click(screen.getByRole("button", { name: "Wake" }));
  await userEvent.click(screen.getByRole("button", { name: "Workspace actions" }));
  expect(await screen.findByRole("menuitem", { name: "Share" })).toBeVisible();
});

it("lets the owner start it from the list", async () => {
  dormantWorkspace((workspace) => (
    <RightsOfList list={[workspace]}>
      <RowActions workspace={workspace} />
    </RightsOfList>
  ));
  await userEvent.click(await screen.findByRole("button", { name: "Actions for lab" }));
  expect(await screen.findByRole("menuitem", { name: "Start" })).toBeVisible();
});
