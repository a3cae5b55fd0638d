import { expect, it } from "vitest";

import type { Permissions } from "../../api/permissions";
import { ADMIN, isAdminPage } from "./nav-admin";
import { DEPLOYMENT } from "../../pages/deployment/nav";

const person = (...allowed: (keyof Permissions)[]) =>
  new Proxy({} as Permissions, {
    get: (_, name) => (allowed as readonly (string | symbol)[]).includes(name),
  });
const menu = (may: Permissions) =>
  ADMIN.filter((item) => item.allowed?.(may) ?? true).map((item) => item.text);

it("hides administration from users who may only read proxies", () => {
  expect(menu(person("viewWorkspaceProxies"))).toEqual([]);
});

it.each([[["editWorkspaceProxies"]], [["viewWorkspaceProxies", "viewDeploymentConfig"]]] as const)(
  "lists the proxies for %s",
  (allowed) => {
    const items = DEPLOYMENT.flatMap((group) => group.items).filter(
      (item) => item.allowed?.(person(...allowed)) ?? true,
    );
    expect(items.map((item) => item.text)).toContain("Workspace proxies");
    expect(menu(person(...allowed))).toContain("Deployment");
  },
);

it.each([
  [
    ["viewAnyGroup", "viewAnyMembers"],
    ["Deployment", "Organizations"],
  ],
  [
    ["viewUsers", "viewAnyMembers"],
    ["Deployment", "Organizations"],
  ],
  [
    ["viewUsers", "viewAnyMembers", "viewAnyAuditLog", "viewAnyConnectionLog"],
    ["Deployment", "Organizations", "Audit logs", "Connection logs"],
  ],
] as const)("shows %j the entries of the original", (allowed, entries) => {
  expect(menu(person(...allowed))).toEqual(entries);
});

it.each([
  ["/deployment/users", true],
  ["/organizations", true],
  ["/audit", true],
  ["/health/derp", true],
  ["/healthy", false],
  ["/workspaces", false],
  ["/@ana/deployment", false],
])("knows whether %s belongs to the administration: %j", (pathname, expected) => {
  expect(isAdminPage(pathname)).toBe(expected);
});
