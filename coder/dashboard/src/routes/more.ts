// Everything else: tasks, inbox, devices, installing, icons.
import { page } from "./page";
import type { RouteObject } from "react-router";

/** Signed in, in the frame. */
export const moreRoutes: RouteObject[] = [
  page("/inbox", async () => (await import("../pages/inbox/InboxPage")).InboxPage),
];

/** Signed in, without the frame. */
export const moreBareRoutes: RouteObject[] = [];

/** Everybody, in the frame. */
export const moreOpenRoutes: RouteObject[] = [
  page("/install", async () => (await import("../pages/InstallPage")).InstallPage),
];
