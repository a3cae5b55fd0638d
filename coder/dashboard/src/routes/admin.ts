// What administrators look after: people, organizations, provisioners, logs, the deployment, its health.
import { createElement } from "react";
import { Navigate, type RouteObject } from "react-router";

import { around, index, page } from "./page";

const to = (path: string, target: string): RouteObject => ({ path, element: createElement(Navigate, { to: target, replace: true }) });

/** The same pages below an organization and, for the default one, below the deployment. */
const GROUPS: RouteObject[] = [
  page("groups", async () => (await import("../pages/groups/GroupsPage")).GroupsPage),
  page("groups/create", async () => (await import("../pages/groups/CreateGroupPage")).CreateGroupPage),
  page("groups/:group", async () => (await import("../pages/groups/GroupPage")).GroupPage),
  page("groups/:group/settings", async () => (await import("../pages/groups/GroupPage")).GroupSettingsPage),
];

const ORGANIZATION: RouteObject[] = [
  index(async () => (await import("../pages/organizations/OrganizationsPage")).OrganizationStart),
  ...GROUPS,
  page("settings", async () => (await import("../pages/organizations/SettingsPage")).OrganizationSettingsPage),
];

const DEPLOYMENT: RouteObject[] = [
  index(async () => (await import("../pages/deployment/DeploymentLayout")).ToFirstPage),
  page("overview", async () => (await import("../pages/deployment/OverviewPage")).OverviewPage),
  page("userauth", async () => (await import("../pages/deployment/OptionsPage")).UserAuthPage),
  page("network", async () => (await import("../pages/deployment/OptionsPage")).NetworkPage),
  page("security", async () => (await import("../pages/deployment/OptionsPage")).SecurityPage),
  page("observability", async () => (await import("../pages/deployment/OptionsPage")).ObservabilityPage),
  page("settings", async () => (await import("../pages/deployment/OptionsPage")).AllSettingsPage),
  page("users", async () => (await import("../pages/people/UsersPage")).UsersPage),
  page("users/create", async () => (await import("../pages/people/CreateUserPage")).CreateUserPage),
  page("workspace-proxies", async () => (await import("../pages/proxies/ProxiesPage")).ProxiesPage),
  ...GROUPS,
];

export const adminRoutes: RouteObject[] = [
  page("/organizations", async () => (await import("../pages/organizations/OrganizationsPage")).OrganizationsPage),
  page("/organizations/new", async () => (await import("../pages/organizations/CreateOrganizationPage")).CreateOrganizationPage),
  around("/organizations/:organization", async () => (await import("../pages/organizations/OrganizationLayout")).OrganizationLayout, ORGANIZATION),
  around("/deployment", async () => (await import("../pages/deployment/DeploymentLayout")).DeploymentLayout, DEPLOYMENT),
  page("/audit", async () => (await import("../pages/logs/AuditPage")).AuditPage),
  page("/connectionlog", async () => (await import("../pages/logs/ConnectionLogPage")).ConnectionLogPage),
  to("/users", "/deployment/users"),
  to("/users/create", "/deployment/users/create"),
  to("/groups", "/deployment/groups"),
];
