// What administrators look after: people, organizations, provisioners, logs, the deployment, its health.
import type { RouteObject } from "react-router";

export const adminRoutes: RouteObject[] = [];
