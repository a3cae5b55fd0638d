// All other pages: tasks, inbox, devices, installation, icons.
import { around, index, page } from "./page";
import type { RouteObject } from "react-router";

/** Signed-in users, in the frame. */
export const moreRoutes: RouteObject[] = [
  page("/inbox", async () => (await import("../../pages/inbox/InboxPage")).InboxPage),
  page("/tasks", async () => (await import("../../pages/tasks/TasksPage")).TasksPage),
  page("/tasks/:owner/:task", async () => (await import("../../pages/tasks/TaskPage")).TaskPage),
  around("/health", async () => (await import("../../pages/health/HealthLayout")).HealthLayout, [
    index(async () => (await import("../../pages/health/FindingsPage")).FindingsPage),
    page("access-url", async () => (await import("../../pages/health/PartPages")).AccessUrlPage),
    page("database", async () => (await import("../../pages/health/PartPages")).DatabasePage),
    page("derp", async () => (await import("../../pages/health/DerpPages")).DerpPage),
    page(
      "derp/regions/:region",
      async () => (await import("../../pages/health/DerpPages")).DerpRegionPage,
    ),
    page("websocket", async () => (await import("../../pages/health/PartPages")).WebsocketPage),
    page(
      "workspace-proxy",
      async () => (await import("../../pages/health/PartPages")).WorkspaceProxyHealthPage,
    ),
    page(
      "provisioner-daemons",
      async () => (await import("../../pages/health/PartPages")).ProvisionerDaemonsPage,
    ),
  ]),
];

/** Signed-in users, without the frame. */
export const moreBareRoutes: RouteObject[] = [];

/** Public, in the frame. */
export const moreOpenRoutes: RouteObject[] = [
  page("/icons", async () => (await import("../../pages/icons/IconsPage")).IconsPage),
  page("/install", async () => (await import("../../pages/install/InstallPage")).InstallPage),
];
