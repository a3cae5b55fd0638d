// Every address of the dashboard, by area. Each area is a file of its own, so that two people can add pages at once.
import { Navigate, type RouteObject } from "react-router";

import { NotFoundPage } from "../../ui/NotFoundPage";
import { accountRoutes } from "./account";
import { adminRoutes } from "./admin";
import { developmentRoutes } from "./development";
import { moreBareRoutes, moreOpenRoutes, moreRoutes } from "./more";
import { signInRoutes, signInSessionRoutes } from "./signin";
import { templateRoutes } from "./templates";
import { workspaceBareRoutes, workspaceRoutes } from "./workspaces";

/** No account needed and no frame. */
export const openRoutes: RouteObject[] = [...signInRoutes];

/** For signed-in people, without the frame: terminals, pages that only hand something over. */
export const bareRoutes: RouteObject[] = [
  ...signInSessionRoutes,
  ...workspaceBareRoutes,
  ...moreBareRoutes,
];

/** For signed-in people, in the frame. */
export const framedRoutes: RouteObject[] = [
  { path: "/", element: <Navigate to="/workspaces" replace /> },
  ...templateRoutes,
  ...adminRoutes,
  ...accountRoutes,
  ...moreRoutes,
  ...workspaceRoutes,
];

/** For everybody, in the frame. */
export const openFramedRoutes: RouteObject[] = [
  ...developmentRoutes,
  ...moreOpenRoutes,
  { path: "*", Component: NotFoundPage },
];
