// What the person may do, asked in one request. A page shows what is allowed, and says one sentence where people look
// for what is not. A new question is one line in the table.
import { queryOptions, useQuery } from "@tanstack/react-query";

import { post } from "./client";
import type { AuthorizationCheck } from "./types";

const check = (resource_type: AuthorizationCheck["object"]["resource_type"], action: AuthorizationCheck["action"], more: Omit<AuthorizationCheck["object"], "resource_type"> = {}): AuthorizationCheck =>
  ({ object: { resource_type, ...more }, action });

const DEPLOYMENT = {
  viewUsers: check("user", "read"),
  createUser: check("user", "create"),
  updateUsers: check("user", "update"),
  deleteUser: check("user", "delete"),
  assignAnyRole: check("assign_org_role", "assign", { any_org: true }),
  viewAnyAuditLog: check("audit_log", "read", { any_org: true }),
  viewAnyConnectionLog: check("connection_log", "read", { any_org: true }),
  viewDeploymentConfig: check("deployment_config", "read"),
  editDeploymentConfig: check("deployment_config", "update"),
  viewDeploymentStats: check("deployment_stats", "read"),
  viewDebugInfo: check("debug_info", "read"),
  viewAnyGroup: check("group", "read", { any_org: true }),
  viewEveryGroup: check("group", "read"),
  createAnyGroup: check("group", "create", { any_org: true }),
  createOrganization: check("organization", "create"),
  editAnyOrganization: check("organization", "update", { any_org: true }),
  viewAnyMembers: check("organization_member", "read", { any_org: true }),
  viewAnyIdpSync: check("idpsync_settings", "read", { any_org: true }),
  viewOrganizationIdpSync: check("idpsync_settings", "read"),
  viewAnyProvisioners: check("provisioner_daemon", "read", { any_org: true }),
  viewAnyProvisionerJobs: check("provisioner_jobs", "update", { any_org: true }), // what the queue asks for
  createAnyTemplate: check("template", "create", { any_org: true }),
  updateAnyTemplate: check("template", "update", { any_org: true }),
  viewWorkspaceProxies: check("workspace_proxy", "read"),
  editWorkspaceProxies: check("workspace_proxy", "create"),
  viewOAuth2Apps: check("oauth2_app", "read"),
  editOAuth2Apps: check("oauth2_app", "create"),
  viewAnyWorkspace: check("workspace", "read", { any_org: true }),
  enterAnyWorkspace: check("workspace", "ssh"),
  viewAnyTask: check("task", "read", { any_org: true }),
  createWorkspaceForAny: check("workspace", "create", { any_org: true, owner_id: "*" }),
} as const satisfies Record<string, AuthorizationCheck>;

export type Permissions = Record<keyof typeof DEPLOYMENT, boolean>;

const NOTHING = Object.fromEntries(Object.keys(DEPLOYMENT).map((name) => [name, false])) as Permissions;

const permissions = queryOptions({
  queryKey: ["permissions"],
  queryFn: () => post<Permissions>("/api/v2/authcheck", { checks: DEPLOYMENT }),
  staleTime: 60_000,
});

/** Nothing is allowed until the answer is there: what appears late disturbs less than what disappears. */
export function usePermissions(): Permissions & { known: boolean } {
  const answer = useQuery(permissions);
  return { ...(answer.data ?? NOTHING), known: answer.data !== undefined };
}

/** Questions about one thing, under a key of its own. */
export function useChecks<T extends string>(key: readonly unknown[], checks: Record<T, AuthorizationCheck> | null): Partial<Record<T, boolean>> {
  const answer = useQuery({
    queryKey: ["permissions", ...key],
    queryFn: () => post<Record<T, boolean>>("/api/v2/authcheck", { checks }),
    enabled: checks !== null,
    staleTime: 60_000,
  });
  return answer.data ?? {};
}

/** Whether the person may have workspaces of their own in an organization; undefined until it is known. */
export function useMayCreateWorkspace(organization: string | undefined): boolean | undefined {
  const checks = organization === undefined ? null : { create: check("workspace", "create", { organization_id: organization, owner_id: "me" }) };
  return useChecks(["workspaces", organization], checks).create;
}

export const NO_WORKSPACES = "You may not create workspaces in this organization.";

export function templateChecks(id: string, organization: string) {
  const object = { resource_id: id, organization_id: organization };
  return {
    update: check("template", "update", object),
    remove: check("template", "delete", object),
    read: check("template", "read", object),
    insights: check("template", "view_insights", object),
    createWorkspace: check("workspace", "create", { organization_id: organization, owner_id: "me" }),
  };
}

export function workspaceChecks(id: string, organization: string, owner: string) {
  const object = { resource_id: id, organization_id: organization, owner_id: owner };
  return {
    read: check("workspace", "read", object),
    update: check("workspace", "update", object),
    remove: check("workspace", "delete", object),
    share: check("workspace", "share", object),
    ssh: check("workspace", "ssh", object),
    connect: check("workspace", "application_connect", object),
    start: check("workspace", "start", object),
    stop: check("workspace", "stop", object),
    config: check("deployment_config", "read"),
  };
}

/** What the pages of one organization ask: the same words as its rules. */
export function organizationChecks(id: string) {
  const object = { organization_id: id };
  return {
    update: check("organization", "update", object),
    remove: check("organization", "delete", object),
    viewMembers: check("organization_member", "read", object),
    addMembers: check("organization_member", "create", object),
    removeMembers: check("organization_member", "delete", object),
    assignRoles: check("assign_org_role", "assign", object),
    createRoles: check("assign_org_role", "create", object),
    updateRoles: check("assign_org_role", "update", object),
    deleteRoles: check("assign_org_role", "delete", object),
    viewGroups: check("group", "read", object),
    createGroups: check("group", "create", object),
    updateGroups: check("group", "update", object),
    deleteGroups: check("group", "delete", object),
    viewDaemons: check("provisioner_daemon", "read", object),
    createKeys: check("provisioner_daemon", "create", object),
    deleteKeys: check("provisioner_daemon", "delete", object),
    viewJobs: check("provisioner_jobs", "update", object),
    viewSync: check("idpsync_settings", "read", object),
    editSync: check("idpsync_settings", "update", object),
  };
}

export type OrganizationPermissions = Partial<Record<keyof ReturnType<typeof organizationChecks>, boolean>>;

/** For everything else. */
export { check as authorizationCheck };
