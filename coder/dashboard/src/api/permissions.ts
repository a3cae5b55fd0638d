// What the person may do, asked in one request. A page shows what is allowed, and says one sentence where people look
// for what is not. A new question is one line in the table.
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
  viewEveryGroup: check("group", "read"),
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
  viewAnyWorkspace: check("workspace", "read", { any_org: true }),
  enterAnyWorkspace: check("workspace", "ssh"),
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

/** Nothing is allowed until the answer is there: what appears late disturbs less than what disappears. */
export function usePermissions(): Permissions & { known: boolean } {
  const answer = useQuery(permissions);
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

/** Questions about one thing, under a key of its own. `keep`: the last answers stand until those of a new key are there;
 * only for names that say what they are about. */
export function useChecks<T extends string>(
  key: readonly unknown[],
  checks: Record<T, AuthorizationCheck> | null,
  { keep = false } = {},
): Partial<Record<T, boolean>> {
  const answer = useQuery({
    ...answers(key, checks),
    enabled: checks !== null,
    ...(keep ? { placeholderData: keepPreviousData } : {}),
  });
  return answer.data ?? {};
}

/** For whom the person may make workspaces in this very organization: whoever administers one may be nobody in the next. */
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

/** Whether the person may make workspaces in an organization, for themselves or for anybody; undefined until it is known. */
export function useMayCreateWorkspace(organization: string | undefined): boolean | undefined {
  const { own, any } = useWorkspaceCreation(organization);
  return own || any;
}

const MAKING = {
  templates: (organization_id: string) => check("template", "create", { organization_id }),
  tasks: (organization_id: string) => check("task", "create", { organization_id, owner_id: "me" }),
};

/** In which of these organizations the person may make such things: somebody who administers one may be nobody in the next. */
export const makingOf = (what: keyof typeof MAKING, organizations: readonly string[]) =>
  answers(
    ["making", what, [...organizations].sort()],
    Object.fromEntries(organizations.map((id) => [id, MAKING[what](id)])),
  );

/** The same, as those of them where it is so; undefined until it is known. */
export function useMakingIn(
  what: keyof typeof MAKING,
  organizations: readonly string[],
): readonly string[] | undefined {
  const answer = useQuery({
    ...makingOf(what, organizations),
    enabled: organizations.length > 0,
  }).data;
  return organizations.length === 0
    ? organizations
    : answer && organizations.filter((id) => answer[id] === true);
}

/** For whom: for others, and for themselves. Whoever makes them for others alone has to say for whom. */
export function useWorkspaceOwners(organization: string): { others: boolean; self: boolean } {
  const { own, any } = useWorkspaceCreation(organization);
  return { others: any === true, self: own !== false };
}

// Sentences that stand where people look for what they may not do.
export const NO_WORKSPACES = "You may not create workspaces in this organization.";
export const NO_WORKSPACES_ANYWHERE = "You may look at workspaces, not create them.";
export const NO_TEMPLATES = "You may use templates, not make them.";
export const NO_CHANGES = "You may see this workspace, not change it.";
export const NO_TASKS = "You may look at tasks, not begin them.";

function templateChecks(id: string, organization: string) {
  const object = { resource_id: id, organization_id: organization };
  return {
    update: check("template", "update", object),
    remove: check("template", "delete", object),
    read: check("template", "read", object),
    insights: check("template", "view_insights", object),
  };
}

/** Tasks are not shared one by one: all of one owner in an organization are alike. */
export function useTaskRights(organization: string, owner: string) {
  const object = { organization_id: organization, owner_id: owner };
  return useChecks(["tasks", organization, owner], {
    update: check("task", "update", object),
    remove: check("task", "delete", object),
  });
}

/** What of a workspace decides who may do what with it. */
type Guarded = Pick<Workspace, "id" | "organization_id" | "owner_id" | "dormant_at">;

/** What the person may do with one workspace; nothing until it is known. */
export function useWorkspaceRights(workspace: Guarded, { enabled = true } = {}): WorkspaceRights {
  return useChecks(
    ["workspace", rightsKey(workspace)],
    enabled ? workspaceChecks(workspace) : null,
  );
}

/** Changes with what was answered about it: a workspace that was woken may be started and shared. */
export const rightsKey = ({ id, dormant_at }: Guarded): string =>
  dormant_at ? `${id} dormant` : id;

/** The same of a template; null while it is not there yet. */
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
    // Starting wakes a dormant one: the server judges it as the workspace it will be, not as the one that has this id.
    start: check("workspace", "start", dormant_at ? { organization_id, owner_id } : object),
    stop: check("workspace", "stop", object),
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

export type OrganizationPermissions = Partial<
  Record<keyof ReturnType<typeof organizationChecks>, boolean>
>;

/** For everything else. */
export { check as authorizationCheck };
