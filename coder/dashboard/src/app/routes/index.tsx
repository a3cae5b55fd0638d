// All addresses of the dashboard, by area. Each area is a file of its own, so that two people can
// add pages concurrently.
import { Navigate, type RouteObject } from "react-router";

import { NotFoundPage } from "../../ui/NotFoundPage";
import { accountRoutes } from "./account";
import { adminRoutes } from "./admin";
import { developmentRoutes } from "./development";
import { moreBareRoutes, moreOpenRoutes, moreRoutes } from "./more";
import { signInRoutes, signInSessionRoutes } from "./signin";
import { templateRoutes } from "./templates";
import { workspaceBareRoutes, workspaceRoutes } from "./workspaces";

/** Public, without the frame. */
export const openRoutes: RouteObject[] = [...signInRoutes];

/** Signed-in users, without the frame: terminals, pages that only hand something over. */
export const bareRoutes: RouteObject[] = [
  ...signInSessionRoutes,
  ...workspaceBareRoutes,
  ...moreBareRoutes,
];

/** Signed-in users, in the frame. */
export const framedRoutes: RouteObject[] = [
  { path: "/", element: <Navigate to="/workspaces" replace /> },
  ...templateRoutes,
  ...adminRoutes,
  ...accountRoutes,
  ...moreRoutes,
  ...workspaceRoutes,
];

/** Public, in the frame. */
export const openFramedRoutes: RouteObject[] = [
  ...developmentRoutes,
  ...moreOpenRoutes,
  { path: "*", Component: NotFoundPage },
];
