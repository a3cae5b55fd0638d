// Administration: users, organizations, provisioners, logs, the deployment, its health.
import { createElement } from "react";
import { Navigate, type RouteObject } from "react-router";

import { around, index, page } from "./page";

const to = (path: string, target: string): RouteObject => ({
  path,
  element: createElement(Navigate, { to: target, replace: true }),
});

/** The same pages below an organization and, for the default organization, below the deployment. */
const GROUPS: RouteObject[] = [
  page("groups", async () => (await import("../../pages/groups/GroupsPage")).GroupsPage),
  page(
    "groups/create",
    async () => (await import("../../pages/groups/CreateGroupPage")).CreateGroupPage,
  ),
  page("groups/:group", async () => (await import("../../pages/groups/GroupPage")).GroupPage),
  page(
    "groups/:group/settings",
    async () => (await import("../../pages/groups/GroupPage")).GroupSettingsPage,
  ),
];

const ORGANIZATION: RouteObject[] = [
  index(
    async () => (await import("../../pages/organizations/OrganizationsPage")).OrganizationStart,
  ),
  ...GROUPS,
  page("roles", async () => (await import("../../pages/organizations/RolesPage")).RolesPage),
  page(
    "roles/create",
    async () => (await import("../../pages/organizations/RoleEditorPage")).RoleEditorPage,
  ),
  page(
    "roles/:role",
    async () => (await import("../../pages/organizations/RoleEditorPage")).RoleEditorPage,
  ),
  page("idp-sync", async () => (await import("../../pages/organizations/IdpSyncPage")).IdpSyncPage),
  page(
    "provisioners",
    async () => (await import("../../pages/provisioners/DaemonsPage")).DaemonsPage,
  ),
  page(
    "provisioner-keys",
    async () => (await import("../../pages/provisioners/KeysPage")).KeysPage,
  ),
  page(
    "provisioner-jobs",
    async () => (await import("../../pages/provisioners/JobsPage")).JobsPage,
  ),
  page(
    "settings",
    async () => (await import("../../pages/organizations/SettingsPage")).OrganizationSettingsPage,
  ),
];

const DEPLOYMENT: RouteObject[] = [
  page(
    "users/:user/access",
    async () => (await import("../../pages/people/access/AccessPage")).AccessPage,
  ),
  index(async () => (await import("../../pages/deployment/DeploymentLayout")).ToFirstPage),
  page("overview", async () => (await import("../../pages/deployment/OverviewPage")).OverviewPage),
  page("roles", async () => (await import("../../pages/deployment/SiteRolesPage")).SiteRolesPage),
  page(
    "idp-org-sync",
    async () => (await import("../../pages/deployment/OrganizationSyncPage")).OrganizationSyncPage,
  ),
  page(
    "appearance",
    async () => (await import("../../pages/deployment/AppearancePage")).AppearancePage,
  ),
  page(
    "notifications",
    async () => (await import("../../pages/deployment/NotificationsPage")).NotificationsPage,
  ),
  page(
    "external-auth",
    async () => (await import("../../pages/deployment/ExternalAuthListPage")).ExternalAuthListPage,
  ),
  page(
    "oauth2-provider/apps",
    async () => (await import("../../pages/deployment/OAuth2AppsPage")).OAuth2AppsPage,
  ),
  page(
    "oauth2-provider/apps/add",
    async () => (await import("../../pages/deployment/OAuth2AppsPage")).CreateOAuth2AppPage,
  ),
  page(
    "oauth2-provider/apps/:app",
    async () => (await import("../../pages/deployment/OAuth2AppPage")).OAuth2AppPage,
  ),
  page("userauth", async () => (await import("../../pages/deployment/OptionsPage")).UserAuthPage),
  page("network", async () => (await import("../../pages/deployment/OptionsPage")).NetworkPage),
  page("security", async () => (await import("../../pages/deployment/OptionsPage")).SecurityPage),
  page(
    "observability",
    async () => (await import("../../pages/deployment/OptionsPage")).ObservabilityPage,
  ),
  page(
    "settings",
    async () => (await import("../../pages/deployment/OptionsPage")).AllSettingsPage,
  ),
  page("users", async () => (await import("../../pages/people/UsersPage")).UsersPage),
  page(
    "users/create",
    async () => (await import("../../pages/people/CreateUserPage")).CreateUserPage,
  ),
  page(
    "workspace-proxies",
    async () => (await import("../../pages/proxies/ProxiesPage")).ProxiesPage,
  ),
  page(
    "groups",
    async () => (await import("../../pages/groups/DeploymentGroups")).DeploymentGroups,
  ),
  ...GROUPS.slice(1),
];

export const adminRoutes: RouteObject[] = [
  page(
    "/organizations",
    async () => (await import("../../pages/organizations/OrganizationsPage")).OrganizationsPage,
  ),
  page(
    "/organizations/new",
    async () =>
      (await import("../../pages/organizations/CreateOrganizationPage")).CreateOrganizationPage,
  ),
  around(
    "/organizations/:organization",
    async () => (await import("../../pages/organizations/OrganizationLayout")).OrganizationLayout,
    ORGANIZATION,
  ),
  around(
    "/deployment",
    async () => (await import("../../pages/deployment/DeploymentLayout")).DeploymentLayout,
    DEPLOYMENT,
  ),
  page("/audit", async () => (await import("../../pages/logs/AuditPage")).AuditPage),
  page(
    "/connectionlog",
    async () => (await import("../../pages/logs/ConnectionLogPage")).ConnectionLogPage,
  ),
  to("/users", "/deployment/users"),
  to("/users/create", "/deployment/users/create"),
  to("/groups", "/deployment/groups"),
];
