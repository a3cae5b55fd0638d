// Permissions of the signed-in user, checked in one request. A page shows the controls that are
// allowed, and one sentence in place of those that are not. A new check is one line in the table.
import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";

import { post } from "./client";
import type { AuthorizationCheck, Template, Workspace } from "./types";

const check = (
  resource_type: AuthorizationCheck["object"]["resource_type"],
  action: AuthorizationCheck["action"],
  more: Omit<AuthorizationCheck["object"], "resource_type"> = {},
): AuthorizationCheck => ({ object: { resource_type, ...more }, action });

const DEPLOYMENT = {
  viewUsers: check("user", "read"),
  createUser: check("user", "create"),
  updateUsers: check("user", "update"),
  deleteUser: check("user", "delete"),
  endAnySession: check("api_key", "delete"),
  assignAnyRole: check("assign_org_role", "assign", { any_org: true }),
  viewAnyAuditLog: check("audit_log", "read", { any_org: true }),
  viewAnyConnectionLog: check("connection_log", "read", { any_org: true }),
  viewDeploymentConfig: check("deployment_config", "read"),
  editDeploymentConfig: check("deployment_config", "update"),
  viewDeploymentStats: check("deployment_stats", "read"),
  viewDebugInfo: check("debug_info", "read"),
  viewAnyGroup: check("group", "read", { any_org: true }),
  createAnyGroup: check("group", "create", { any_org: true }),
  createOrganization: check("organization", "create"),
  editAnyOrganization: check("organization", "update", { any_org: true }),
  viewAnyMembers: check("organization_member", "read", { any_org: true }),
  viewAnyIdpSync: check("idpsync_settings", "read", { any_org: true }),
  viewOrganizationIdpSync: check("idpsync_settings", "read"),
  editOrganizationIdpSync: check("idpsync_settings", "update"),
  viewAnyProvisioners: check("provisioner_daemon", "read", { any_org: true }),
  viewAnyProvisionerJobs: check("provisioner_jobs", "update", { any_org: true }), // what the queue asks for
  createAnyTemplate: check("template", "create", { any_org: true }),
  viewWorkspaceProxies: check("workspace_proxy", "read"),
  editWorkspaceProxies: check("workspace_proxy", "create"),
  viewOAuth2Apps: check("oauth2_app", "read"),
  editOAuth2Apps: check("oauth2_app", "create"),
  viewAllWorkspaces: check("workspace", "read"),
  viewAnyWorkspace: check("workspace", "read", { any_org: true }),
  connectToAnyWorkspace: check("workspace", "ssh"),
  viewAnyTask: check("task", "read", { any_org: true }),
  createWorkspaceForAny: check("workspace", "create", { any_org: true, owner_id: "*" }),
  createOwnWorkspace: check("workspace", "create", { any_org: true, owner_id: "me" }),
} as const satisfies Record<string, AuthorizationCheck>;

export type Permissions = Record<keyof typeof DEPLOYMENT, boolean>;

const NOTHING = Object.fromEntries(
  Object.keys(DEPLOYMENT).map((name) => [name, false]),
) as Permissions;

const permissions = queryOptions({
  queryKey: ["permissions"],
  queryFn: () => post<Permissions>("/api/v2/authcheck", { checks: DEPLOYMENT }),
  staleTime: 60_000,
});

/**
 * Nothing is allowed until the answer arrives: a control that appears late disturbs less than one
 * that disappears.
 */
export function usePermissions(enabled = true): Permissions & { known: boolean } {
  const answer = useQuery({ ...permissions, enabled });
  return { ...(answer.data ?? NOTHING), known: answer.data !== undefined };
}

const answers = <T extends string>(
  key: readonly unknown[],
  checks: Record<T, AuthorizationCheck> | null,
) =>
  queryOptions({
    queryKey: ["permissions", ...key],
    queryFn: () => post<Record<T, boolean>>("/api/v2/authcheck", { checks }),
    staleTime: 60_000,
  });

/**
 * Checks about one object, under a key of their own. `keep`: the last answers stay until those of
 * the new key arrive; use it only for names that include the object.
 */
export function useChecks<T extends string>(
  key: readonly unknown[],
  checks: Record<T, AuthorizationCheck> | null,
  { keep = false } = {},
): Partial<Record<T, boolean>> {
  return useCheckAnswer(key, checks, { keep }).data ?? {};
}

/** The same as a query, for pages that say why something is not shown: the check itself may fail. */
export function useCheckAnswer<T extends string>(
  key: readonly unknown[],
  checks: Record<T, AuthorizationCheck> | null,
  { keep = false } = {},
) {
  return useQuery({
    ...answers(key, checks),
    enabled: checks !== null,
    ...(keep ? { placeholderData: keepPreviousData } : {}),
  });
}

/**
 * Whose workspaces the user may create in exactly this organization: an administrator of one
 * organization may have no rights in the next.
 */
function useWorkspaceCreation(organization: string | undefined) {
  return useChecks(
    ["workspaces", organization],
    organization === undefined
      ? null
      : {
          own: check("workspace", "create", { organization_id: organization, owner_id: "me" }),
          any: check("workspace", "create", { organization_id: organization, owner_id: "*" }),
        },
  );
}

/**
 * Whether the user may create workspaces in an organization, for themselves or for any other owner;
 * undefined until known.
 */
export function useMayCreateWorkspace(organization: string | undefined): boolean | undefined {
  const { own, any } = useWorkspaceCreation(organization);
  return own || any;
}

const CREATE_CHECKS = {
  templates: (organization_id: string) => check("template", "create", { organization_id }),
  tasks: (organization_id: string) => check("task", "create", { organization_id, owner_id: "me" }),
};

/**
 * The organizations among these in which the user may create such objects: an administrator of one
 * may have no rights in the next.
 */
export const createChecksOf = (
  kind: keyof typeof CREATE_CHECKS,
  organizations: readonly string[],
) =>
  answers(
    ["making", kind, [...organizations].sort()],
    Object.fromEntries(organizations.map((id) => [id, CREATE_CHECKS[kind](id)])),
  );

/** The same result as a list of organizations; undefined until known. */
export function useCreationIn(
  kind: keyof typeof CREATE_CHECKS,
  organizations: readonly string[],
): readonly string[] | undefined {
  const answer = useQuery({
    ...createChecksOf(kind, organizations),
    enabled: organizations.length > 0,
  }).data;
  return organizations.length === 0
    ? organizations
    : answer && organizations.filter((id) => answer[id] === true);
}

/**
 * Possible owners: others, and the user. A user who may create only for others has to choose an
 * owner.
 */
export function useWorkspaceOwners(organization: string): { others: boolean; self: boolean } {
  const { own, any } = useWorkspaceCreation(organization);
  return { others: any === true, self: own !== false };
}

// Sentences shown in place of controls that the user may not use.
export const NO_WORKSPACES = "You need permission to create workspaces in this organization.";
export const NO_WORKSPACES_ANYWHERE = "You can view workspaces but not create them.";
export const NO_TEMPLATES = "You can use templates but not create them.";
export const NO_CHANGES = "You can view this workspace but not change it.";
export const NO_TASKS = "You can view tasks but not create them.";

function templateChecks(id: string, organization: string) {
  const object = { resource_id: id, organization_id: organization };
  return {
    update: check("template", "update", object),
    remove: check("template", "delete", object),
    read: check("template", "read", object),
    insights: check("template", "view_insights", object),
  };
}

/**
 * Tasks are not shared individually: all tasks of one owner in an organization have the same
 * rights.
 */
export function useTaskRights(organization: string, owner: string) {
  const object = { organization_id: organization, owner_id: owner };
  return useChecks(["tasks", organization, owner], {
    update: check("task", "update", object),
    remove: check("task", "delete", object),
  });
}

/** The fields of a workspace that decide who may do what with it. */
type Guarded = Pick<Workspace, "id" | "organization_id" | "owner_id" | "dormant_at">;

/** The user's permissions on one workspace; nothing is allowed until known. */
export function useWorkspaceRights(workspace: Guarded, { enabled = true } = {}): WorkspaceRights {
  return useChecks(
    ["workspace", rightsKey(workspace)],
    enabled ? workspaceChecks(workspace) : null,
  );
}

/** Invalidated together with the workspace: one that was woken can be started and shared. */
export const rightsKey = ({ id, dormant_at }: Guarded): string =>
  dormant_at ? `${id} dormant` : id;

/** The user's permissions on one template; null until the template is loaded. */
export function useTemplateRights(
  template: Pick<Template, "id" | "organization_id"> | null,
): TemplateRights {
  return useChecks(
    ["template", template?.id],
    template ? templateChecks(template.id, template.organization_id) : null,
  );
}

export type TemplateRights = Partial<Record<keyof ReturnType<typeof templateChecks>, boolean>>;
export type WorkspaceRights = Partial<Record<keyof ReturnType<typeof workspaceChecks>, boolean>>;

export function workspaceChecks({ id, organization_id, owner_id, dormant_at }: Guarded) {
  const object = { resource_id: id, organization_id, owner_id };
  return {
    read: check("workspace", "read", object),
    update: check("workspace", "update", object),
    remove: check("workspace", "delete", object),
    share: check("workspace", "share", object),
    ssh: check("workspace", "ssh", object),
    connect: check("workspace", "application_connect", object),
    // Starting wakes a dormant workspace: the server judges the workspace in its new state, not the row
    // with this id.
    start: check("workspace", "start", dormant_at ? { organization_id, owner_id } : object),
    stop: check("workspace", "stop", object),
  };
}

/** The permission checks of an organization's pages, in the same words as the server's rules. */
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

export type OrganizationPermissions = Partial<
  Record<keyof ReturnType<typeof organizationChecks>, boolean>
>;

/** All other checks. */
export { check as authorizationCheck };
