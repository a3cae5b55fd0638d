// Controls of pages: their page, how to find them, and the permission each needs.
import type { RouteObject } from "react-router";

import {
  NO_CHANGES,
  NO_TASKS,
  NO_TEMPLATES,
  NO_WORKSPACES,
  NO_WORKSPACES_ANYWHERE,
} from "../api/permissions";
import { CommandPalette } from "../app/frame/CommandPalette";
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
import type { WorkspaceAgent } from "../api/types";
import { workspace, failed } from "./offers-answers";

export interface Offer {
  page: RouteObject[];
  at?: string;
  /** Clicked first: opens the menu that contains it. */
  open?: string | RegExp;
  /** Role and name of the control. */
  shown: readonly [string, string | RegExp];
  /** The required permission: resource.action. */
  right: string;
  sentence: string | RegExp | null;
}

const onlyRoute = (element: RouteObject["element"]): RouteObject[] => [{ path: "*", element }];
export const page = (
  path: string,
  Component: NonNullable<RouteObject["Component"]>,
): RouteObject[] => [{ path, Component }];
const ROW = "Actions for lab";

export const OFFERS: Record<string, Offer> = {
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
    sentence: "View only",
  },
  "a new workspace, of a template": {
    page: page("/templates/:template", TemplateLayout),
    at: "/templates/box",
    shown: ["link", "Create workspace"],
    right: "workspace.create",
    sentence: NO_WORKSPACES,
  },
  "a new workspace, in the palette": {
    page: onlyRoute(<CommandPalette onClose={() => undefined} />),
    shown: ["option", "Box"],
    right: "workspace.create",
    sentence: null,
  },
  "a machine to attach, in the palette": {
    page: onlyRoute(<CommandPalette onClose={() => undefined} />),
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
    shown: ["link", "Use starter template"],
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
    page: onlyRoute(<WorkspaceActions workspace={workspace} />),
    shown: ["button", "Start"],
    right: "workspace.start",
    sentence: null,
  },
  stopping: {
    page: onlyRoute(<WorkspaceActions workspace={workspace} />),
    shown: ["button", "Stop"],
    right: "workspace.stop",
    sentence: null,
  },
  "starting and stopping": {
    page: onlyRoute(<WorkspaceActions workspace={workspace} />),
    shown: ["button", "Start"],
    right: "workspace.*",
    sentence: "You can view this workspace but not start or stop it.",
  },
  settings: {
    page: onlyRoute(<WorkspaceActions workspace={workspace} />),
    open: "Workspace actions",
    shown: ["menuitem", "Settings"],
    right: "workspace.update",
    sentence: NO_CHANGES,
  },
  deleting: {
    page: onlyRoute(<WorkspaceActions workspace={workspace} />),
    open: "Workspace actions",
    shown: ["menuitem", "Delete…"],
    right: "workspace.delete",
    sentence: null,
  },
  "building again": {
    page: onlyRoute(<Banners workspace={failed} />),
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
    page: onlyRoute(
      <PortsButton workspace={workspace} agent={{ id: "a", name: "main" } as WorkspaceAgent} />,
    ),
    open: /Open ports/,
    shown: ["button", "Share"],
    right: "workspace.update",
    sentence: "You need update permission on this workspace to share its ports.",
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
    sentence: "You can use this template but not change it",
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
    sentence: /You need permission to view the settings of this application/,
  },
};
