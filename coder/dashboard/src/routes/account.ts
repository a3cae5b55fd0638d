// A person's own settings: /settings/….
import type { RouteObject } from "react-router";

export const accountRoutes: RouteObject[] = [];
