// A line of a route table: an address and the module of its page, loaded when the user opens it.
import type { ComponentType } from "react";
import type { RouteObject } from "react-router";

/**
 * `load` returns the component: `page("/audit", async () => (await
 * import("../pages/audit/AuditPage")).AuditPage)`.
 */
export function page(path: string, load: () => Promise<ComponentType>): RouteObject {
  return { path, lazy: async () => ({ Component: await load() }) };
}

/** A layout page: its component shows its children in an `<Outlet />`. */
export function around(
  path: string,
  load: () => Promise<ComponentType>,
  children: RouteObject[],
): RouteObject {
  return { path, lazy: async () => ({ Component: await load() }), children };
}

/** The child shown at its parent's own address. */
export function index(load: () => Promise<ComponentType>): RouteObject {
  return { index: true, lazy: async () => ({ Component: await load() }) };
}
