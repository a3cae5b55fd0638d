// Workspaces: the list, and the pages of one workspace.
import type { RouteObject } from "react-router";

import { around, index, page } from "./page";

export const workspaceRoutes: RouteObject[] = [
  page("/home", async () => (await import("../../pages/workspaces/home/HomePage")).HomePage),
  page(
    "/workspaces",
    async () => (await import("../../pages/workspaces/WorkspacesPage")).WorkspacesPage,
  ),
  page(
    "/workspaces/attach",
    async () => (await import("../../pages/workspaces/AttachPage")).AttachPage,
  ),
  page(
    "/workspaces/fleet",
    async () => (await import("../../pages/workspaces/fleet/FleetPage")).FleetPage,
  ),
  page(
    "/workspaces/idle",
    async () => (await import("../../pages/workspaces/idle/IdlePage")).IdlePage,
  ),
  page(
    "/:owner/:workspace",
    async () => (await import("../../pages/workspaces/WorkspacePage")).WorkspacePage,
  ),
  page(
    "/:owner/:workspace/builds/:number",
    async () => (await import("../../pages/workspaces/builds/BuildPage")).BuildPage,
  ),
  page(
    "/:owner/:workspace/connection",
    async () => (await import("../../pages/workspaces/connection/ConnectionPage")).ConnectionPage,
  ),
  around(
    "/:owner/:workspace/settings",
    async () => (await import("../../pages/workspaces/settings/SettingsLayout")).SettingsLayout,
    [
      index(async () => (await import("../../pages/workspaces/settings/GeneralPage")).GeneralPage),
      page(
        "parameters",
        async () => (await import("../../pages/workspaces/settings/ParametersPage")).ParametersPage,
      ),
      page(
        "schedule",
        async () => (await import("../../pages/workspaces/settings/SchedulePage")).SchedulePage,
      ),
      page(
        "sharing",
        async () => (await import("../../pages/workspaces/settings/SharingPage")).SharingPage,
      ),
    ],
  ),
];

export const workspaceBareRoutes: RouteObject[] = [
  page(
    "/:owner/:workspace/terminal",
    async () => (await import("../../pages/terminal/TerminalPage")).TerminalPage,
  ),
];
