// What a page shows to somebody who may do a thing, and to somebody who may not: the offer, or a sentence in its place.
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { RouteObject } from "react-router";
import { expect, it } from "vitest";

import {
  NO_CHANGES,
  NO_TASKS,
  NO_TEMPLATES,
  NO_WORKSPACES,
  NO_WORKSPACES_ANYWHERE,
} from "../api/permissions";
import type { AuthorizationCheck } from "../api/types";
import { SignedIn } from "./world";
import { CommandPalette } from "../app/frame/CommandPalette";
import { visit, type Answers } from "./world";
import { OAuth2AppPage } from "../pages/deployment/OAuth2AppPage";
import { TasksPage } from "../pages/tasks/TasksPage";
import { EditorPage } from "../pages/templates/EditorPage";
import { NewTemplatePage } from "../pages/templates/NewTemplatePage";
import { StarterPage } from "../pages/templates/StarterPage";
import { TemplateLayout } from "../pages/templates/TemplateLayout";
import { TemplatesPage } from "../pages/templates/TemplatesPage";
import { PortsButton } from "../pages/workspaces/agent/Ports";
import { Banners } from "../pages/workspaces/Banners";
import { SettingsLayout } from "../pages/workspaces/settings/SettingsLayout";
import { WorkspaceActions } from "../pages/workspaces/WorkspaceActions";
import { AttachPage } from "../pages/workspaces/AttachPage";
import { WorkspacesPage } from "../pages/workspaces/WorkspacesPage";
import type { Workspace, WorkspaceAgent } from "../api/types";

const AT = "2026-01-01T00:00:00Z";
const template = {
  id: "t",
  name: "box",
  display_name: "Box",
  description: "",
  icon: "",
  organization_id: "o",
  organization_name: "org",
  active_version_id: "v",
  deprecated: false,
  active_user_count: 1,
  build_time_stats: {},
  updated_at: AT,
  created_by_name: "ben",
};
const version = {
  id: "v",
  name: "first",
  created_by: { username: "ben" },
  created_at: AT,
  job: { id: "j", file_id: "f", status: "succeeded", tags: {} },
};
const build = {
  id: "b",
  status: "stopped",
  transition: "start",
  created_at: AT,
  resources: [],
  template_version_id: "v",
  job: { id: "j", status: "succeeded" },
};
const workspace = {
  id: "w",
  name: "lab",
  owner_id: "somebody",
  owner_name: "ben",
  organization_id: "o",
  organization_name: "org",
  template_id: "t",
  template_name: "box",
  template_display_name: "Box",
  template_icon: "",
  health: { healthy: true },
  latest_build: build,
} as unknown as Workspace;
const failed = {
  ...workspace,
  latest_build: {
    ...build,
    status: "failed",
    job: { id: "j", status: "failed", error: "exit status 1" },
  },
} as unknown as Workspace;
const task = {
  id: "k",
  name: "mend",
  display_name: "Mend",
  organization_id: "o",
  owner_id: "somebody",
  owner_name: "ben",
  initial_prompt: "",
  status: "active",
  current_state: null,
  created_at: AT,
  workspace_name: "x",
  template_name: "box",
  template_icon: "",
};

const ANSWERS: Answers = {
  "GET /api/v2/users/me": {
    id: "me",
    username: "ana",
    name: "",
    email: "",
    organization_ids: ["o"],
    roles: [],
  },
  "GET /api/v2/buildinfo": { version: "v2" },
  "GET /api/v2/appearance": {},
  "GET /api/v2/organizations": [{ id: "o", name: "org", display_name: "", is_default: true }],
  "GET /api/v2/experiments": ["oauth2"],
  "GET /api/v2/workspaces": { workspaces: [workspace], count: 1 },
  "GET /api/v2/users/ben/workspace/lab": workspace,
  "GET /api/v2/templates": [template],
  "GET /api/v2/templates/t": { ...template, max_port_share_level: "public" },
  "GET /api/v2/templates/examples": [
    { id: "docker", name: "Docker", description: "", icon: "", tags: [], markdown: "text" },
  ],
  "GET /api/v2/organizations/default/templates/box": template,
  "GET /api/v2/organizations/org/templates/box": template,
  "GET /api/v2/organizations/org/templates/box/versions/first": version,
  "GET /api/v2/templateversions/v": version,
  "GET /api/v2/templateversions/v/rich-parameters": [],
  "GET /api/v2/templateversions/v/presets": [],
  "GET /api/v2/templateversions/v/external-auth": [],
  "GET /api/v2/workspacebuilds/b/parameters": [],
  "GET /api/v2/files/f": new Uint8Array(1024),
  "GET /api/v2/tasks": { tasks: [task], count: 1 },
  "GET /api/v2/applications/host": { host: "*.apps.example.com" },
  "GET /api/v2/regions": { regions: [] },
  "GET /api/v2/workspaceagents/a/listening-ports": {
    ports: [{ port: 5173, process_name: "node" }],
  },
  "GET /api/v2/workspaces/w/port-share": { shares: [] },
  "GET /api/v2/oauth2-provider/apps/a": {
    id: "a",
    name: "wiki",
    callback_url: "https://wiki.example.com",
    icon: "",
    endpoints: { authorization: "", token: "", device_authorization: "" },
  },
  "GET /api/v2/oauth2-provider/apps/a/secrets": [],
};

interface Offer {
  page: RouteObject[];
  at?: string;
  /** Pressed first: what opens the menu it stands in. */
  open?: string | RegExp;
  /** Role and name of the offer. */
  shown: readonly [string, string | RegExp];
  /** What has to be allowed: resource.action. */
  right: string;
  sentence: string | RegExp | null;
}

const alone = (element: RouteObject["element"]): RouteObject[] => [{ path: "*", element }];
const page = (path: string, Component: NonNullable<RouteObject["Component"]>): RouteObject[] => [
  { path, Component },
];
const ROW = "Actions for lab";

const OFFERS: Record<string, Offer> = {
  "a new workspace": {
    page: page("/workspaces", WorkspacesPage),
    at: "/workspaces",
    shown: ["button", "New workspace"],
    right: "workspace.create",
    sentence: NO_WORKSPACES_ANYWHERE,
  },
  "a new workspace, of a template in the list": {
    page: page("/templates", TemplatesPage),
    at: "/templates",
    shown: ["link", "Create workspace from Box"],
    right: "workspace.create",
    sentence: "Only to look at",
  },
  "a new workspace, of a template": {
    page: page("/templates/:template", TemplateLayout),
    at: "/templates/box",
    shown: ["link", "Create workspace"],
    right: "workspace.create",
    sentence: NO_WORKSPACES,
  },
  "a new workspace, in the palette": {
    page: alone(<CommandPalette onClose={() => undefined} />),
    shown: ["option", "Box"],
    right: "workspace.create",
    sentence: null,
  },
  "a machine to attach, in the palette": {
    page: alone(<CommandPalette onClose={() => undefined} />),
    shown: ["option", "Attach a machine"],
    right: "workspace.create",
    sentence: null,
  },
  "a machine to attach": {
    page: page("/workspaces/attach", AttachPage),
    at: "/workspaces/attach",
    shown: ["link", "Attach with Box"],
    right: "workspace.create",
    sentence: NO_WORKSPACES_ANYWHERE,
  },
  "another template of such machines": {
    page: page("/workspaces/attach", AttachPage),
    at: "/workspaces/attach",
    shown: ["link", "Begin with the starter template"],
    right: "template.create",
    sentence: null,
  },
  "starting, in the list": {
    page: page("/workspaces", WorkspacesPage),
    at: "/workspaces",
    open: ROW,
    shown: ["menuitem", "Start"],
    right: "workspace.start",
    sentence: null,
  },
  "deleting, in the list": {
    page: page("/workspaces", WorkspacesPage),
    at: "/workspaces",
    open: ROW,
    shown: ["menuitem", "Delete…"],
    right: "workspace.delete",
    sentence: null,
  },
  "settings, in the list": {
    page: page("/workspaces", WorkspacesPage),
    at: "/workspaces",
    open: ROW,
    shown: ["menuitem", "Settings"],
    right: "workspace.update",
    sentence: null,
  },
  "anything, in the list": {
    page: page("/workspaces", WorkspacesPage),
    at: "/workspaces",
    open: ROW,
    shown: ["menuitem", "Settings"],
    right: "workspace.*",
    sentence: NO_CHANGES,
  },
  starting: {
    page: alone(<WorkspaceActions workspace={workspace} />),
    shown: ["button", "Start"],
    right: "workspace.start",
    sentence: null,
  },
  stopping: {
    page: alone(<WorkspaceActions workspace={workspace} />),
    shown: ["button", "Stop"],
    right: "workspace.stop",
    sentence: null,
  },
  "starting and stopping": {
    page: alone(<WorkspaceActions workspace={workspace} />),
    shown: ["button", "Start"],
    right: "workspace.*",
    sentence: "You may look at this workspace, not start or stop it.",
  },
  settings: {
    page: alone(<WorkspaceActions workspace={workspace} />),
    open: "Workspace actions",
    shown: ["menuitem", "Settings"],
    right: "workspace.update",
    sentence: NO_CHANGES,
  },
  deleting: {
    page: alone(<WorkspaceActions workspace={workspace} />),
    open: "Workspace actions",
    shown: ["menuitem", "Delete…"],
    right: "workspace.delete",
    sentence: null,
  },
  "building again": {
    page: alone(<Banners workspace={failed} />),
    shown: ["button", "Retry"],
    right: "workspace.start",
    sentence: null,
  },
  "changing settings": {
    page: [
      {
        path: "/:owner/:workspace/settings",
        Component: SettingsLayout,
        children: [{ index: true, element: <button type="button">Save</button> }],
      },
    ],
    at: "/@ben/lab/settings",
    shown: ["button", "Save"],
    right: "workspace.update",
    sentence: NO_CHANGES,
  },
  "sharing a port": {
    page: alone(
      <PortsButton workspace={workspace} agent={{ id: "a", name: "main" } as WorkspaceAgent} />,
    ),
    open: /Open ports/,
    shown: ["button", "Share"],
    right: "workspace.update",
    sentence: "Who may change the workspace may share its ports.",
  },
  "a new template": {
    page: page("/templates", TemplatesPage),
    at: "/templates",
    shown: ["link", "New template"],
    right: "template.create",
    sentence: null,
  },
  "a new template, by its address": {
    page: page("/templates/new", NewTemplatePage),
    at: "/templates/new",
    shown: ["heading", "Starter templates"],
    right: "template.create",
    sentence: NO_TEMPLATES,
  },
  "a new template, of an example": {
    page: page("/starter-templates/:example", StarterPage),
    at: "/starter-templates/docker",
    shown: ["link", "Use template"],
    right: "template.create",
    sentence: NO_TEMPLATES,
  },
  "a copy of a template": {
    page: page("/templates/:template", TemplateLayout),
    at: "/templates/box",
    open: "Open template menu",
    shown: ["menuitem", "Duplicate…"],
    right: "template.create",
    sentence: null,
  },
  "a menu of a template": {
    page: page("/templates/:template", TemplateLayout),
    at: "/templates/box",
    shown: ["button", "Open template menu"],
    right: "template.*",
    sentence: null,
  },
  "deleting a template": {
    page: page("/templates/:template", TemplateLayout),
    at: "/templates/box",
    open: "Open template menu",
    shown: ["menuitem", "Delete…"],
    right: "template.delete",
    sentence: null,
  },
  "the editor": {
    page: page("/templates/:template/versions/:version/edit", EditorPage),
    at: "/templates/box/versions/first/edit",
    shown: ["button", "Publish"],
    right: "template.update",
    sentence: "You may use this template, not change it.",
  },
  "a task": {
    page: page("/tasks", TasksPage),
    at: "/tasks",
    shown: ["button", "Run task"],
    right: "task.create",
    sentence: NO_TASKS,
  },
  "deleting a task": {
    page: page("/tasks", TasksPage),
    at: "/tasks",
    shown: ["button", "Delete task Mend"],
    right: "task.delete",
    sentence: null,
  },
  "an application's settings": {
    page: page("/apps/:app", OAuth2AppPage),
    at: "/apps/a",
    shown: ["button", "Delete"],
    right: "oauth2_app.create",
    sentence: /You may not see the settings of this application/,
  },
};

/** How every question is answered, and which were answered with no. */
function allowing(denied: string | null) {
  const [kind, action] = (denied ?? " . ").split(".");
  const refused: string[] = [];
  const answer = ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
    Object.fromEntries(
      Object.entries(checks).map(([name, check]) => {
        const no =
          check.object.resource_type === kind && (action === "*" || check.action === action);
        if (no) refused.push(name);
        return [name, !no];
      }),
    );
  return { answer, refused };
}

async function open({ page: routes, at = "/", open: trigger }: Offer, denied: string | null) {
  const { answer, refused } = allowing(denied);
  const given = visit([{ element: <SignedIn bare />, children: routes }], at, {
    ...ANSWERS,
    "POST /api/v2/authcheck": answer,
  });
  if (trigger) await userEvent.click(await screen.findByRole("button", { name: trigger }));
  await waitFor(() => expect(given.asked).toContain("POST /api/v2/authcheck"));
  return { ...given, refused };
}

/** Until the refusal has arrived and nothing else is awaited: before, a page offers nothing to anybody. */
async function settled({ fetching, refused }: Awaited<ReturnType<typeof open>>) {
  await waitFor(() => {
    expect(refused).not.toEqual([]);
    expect(fetching()).toBe(0);
  });
  await act(async () => {
    await new Promise((done) => setTimeout(done));
  }); // what came last is shown
  await waitFor(() => expect(fetching()).toBe(0)); // and what that asked for in its turn
}

const rows = Object.entries(OFFERS).map(([what, offer]) => ({ what, ...offer }));

it.each(rows)("$what: is offered to whoever has $right", async (offer) => {
  await open(offer, null);
  expect(await screen.findByRole(offer.shown[0], { name: offer.shown[1] })).toBeVisible();
  if (offer.sentence) expect(screen.queryByText(offer.sentence)).toBeNull();
});

it.each(rows)("$what: is not offered to whoever lacks $right", async (offer) => {
  await settled(await open(offer, offer.right));
  if (offer.sentence) expect((await screen.findAllByText(offer.sentence))[0]).toBeVisible();
  expect(screen.queryByRole(offer.shown[0], { name: offer.shown[1] })).toBeNull();
});
