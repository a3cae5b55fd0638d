// The permissions of an organization role, as a grid: kinds of resources and their actions.
// tests/unit/dashboard/test_permission_grid.py checks it against the server's own table
// (`coder/domain/access/resources.py`).
import type { Permission } from "../../api/types";

type Kind = Permission["resource_type"];
type Action = Permission["action"];

export const GRID: readonly {
  kind: Kind;
  text: string;
  hint: string;
  actions: readonly Action[];
}[] = [
  {
    kind: "workspace",
    text: "Workspaces",
    hint: "All workspaces in the organization",
    actions: [
      "create",
      "read",
      "update",
      "delete",
      "start",
      "stop",
      "ssh",
      "application_connect",
      "share",
      "create_agent",
      "update_agent",
      "delete_agent",
    ],
  },
  {
    kind: "workspace_dormant",
    text: "Dormant workspaces",
    hint: "Workspaces that have been idle for long",
    actions: [
      "create",
      "read",
      "update",
      "delete",
      "start",
      "stop",
      "ssh",
      "application_connect",
      "share",
      "create_agent",
      "update_agent",
      "delete_agent",
    ],
  },
  {
    kind: "prebuilt_workspace",
    text: "Prebuilt workspaces",
    hint: "Workspaces that wait to be claimed",
    actions: ["update", "delete"],
  },
  {
    kind: "task",
    text: "Tasks",
    hint: "Prompts given to AI agents",
    actions: ["create", "read", "update", "delete"],
  },
  {
    kind: "template",
    text: "Templates",
    hint: "Definitions of workspaces",
    actions: ["create", "read", "update", "delete", "use", "view_insights"],
  },
  {
    kind: "file",
    text: "Files",
    hint: "Archives uploaded with templates",
    actions: ["create", "read"],
  },
  {
    kind: "provisioner_daemon",
    text: "Provisioners",
    hint: "Provisioners and their keys",
    actions: ["create", "read", "update", "delete"],
  },
  {
    kind: "provisioner_jobs",
    text: "Provisioner jobs",
    hint: "The build queue",
    actions: ["create", "read", "update"],
  },
  {
    kind: "organization",
    text: "The organization",
    hint: "Name, settings and deletion",
    actions: ["create", "read", "update", "delete"],
  },
  {
    kind: "organization_member",
    text: "Members",
    hint: "Users in the organization",
    actions: ["create", "read", "update", "delete"],
  },
  { kind: "group", text: "Groups", hint: "", actions: ["create", "read", "update", "delete"] },
  { kind: "group_member", text: "Members of groups", hint: "", actions: ["read"] },
  {
    kind: "assign_org_role",
    text: "Roles",
    hint: "Creating and assigning roles",
    actions: ["create", "read", "update", "delete", "assign", "unassign"],
  },
  { kind: "idpsync_settings", text: "IdP sync", hint: "", actions: ["read", "update"] },
  { kind: "audit_log", text: "Audit log", hint: "", actions: ["create", "read"] },
  { kind: "connection_log", text: "Connection log", hint: "", actions: ["read", "update"] },
];

export const ACTION_TEXT: Readonly<Partial<Record<Action, string>>> = {
  ssh: "SSH",
  application_connect: "open apps",
  create_agent: "create agents",
  update_agent: "update agents",
  delete_agent: "delete agents",
  view_insights: "view insights",
  read: "read",
};

const same = (kind: Kind, action: Action) => (permission: Permission) =>
  permission.resource_type === kind && permission.action === action && !permission.negate;

export function isGiven(permissions: readonly Permission[], kind: Kind, action: Action): boolean {
  return permissions.some(
    (permission) =>
      !permission.negate &&
      (permission.resource_type === kind || permission.resource_type === "*") &&
      (permission.action === action || (permission.action as string) === "*"),
  );
}

/**
 * `permissions` with one added or removed; permissions outside the grid stay unchanged.
 * "Everything" is first split into its parts.
 */
export function grantedActions(
  permissions: readonly Permission[],
  kind: Kind,
  action: Action,
  on: boolean,
): Permission[] {
  const row = GRID.find((permission) => permission.kind === kind);
  const spread = permissions.flatMap((permission) =>
    !permission.negate && permission.resource_type === kind && (permission.action as string) === "*"
      ? (row?.actions ?? []).map((each) => ({ ...permission, action: each }))
      : [permission],
  );
  const rest = spread.filter((permission) => !same(kind, action)(permission));
  return on ? [...rest, { negate: false, resource_type: kind, action }] : rest;
}

/** Number of permissions outside the grid: negated ones, and kinds that it does not show. */
export function beyondGrid(permissions: readonly Permission[]): Permission[] {
  return permissions.filter(
    (permission) => permission.negate || !GRID.some((row) => row.kind === permission.resource_type),
  );
}

/** Resources with the same permissions, grouped: thirty lines of "everything" are not readable. */
export function byActions(
  rows: ReturnType<typeof summary>,
): { actions: string; negate: boolean; texts: string[] }[] {
  const groups = new Map<string, { actions: string; negate: boolean; texts: string[] }>();
  for (const { text, actions, negate } of rows) {
    const key = `${actions} ${negate}`;
    groups.set(key, { actions, negate, texts: [...(groups.get(key)?.texts ?? []), text] });
  }
  return [...groups.values()];
}

/** "Workspaces: read, stop": a role in a few lines. */
export function summary(
  permissions: readonly Permission[],
): { kind: string; text: string; actions: string; negate: boolean }[] {
  const rows = new Map<
    string,
    { kind: string; text: string; actions: string[]; negate: boolean }
  >();
  for (const permission of permissions) {
    const key = `${permission.resource_type} ${permission.negate}`;
    const row = rows.get(key) ?? {
      kind: permission.resource_type as string,
      text:
        permission.resource_type === "*"
          ? "Everything"
          : (GRID.find((entry) => entry.kind === permission.resource_type)?.text ??
            permission.resource_type.replaceAll("_", " ")),
      actions: [],
      negate: permission.negate,
    };
    row.actions.push(
      (permission.action as string) === "*"
        ? "everything"
        : (ACTION_TEXT[permission.action] ?? permission.action.replaceAll("_", " ")),
    );
    rows.set(key, row);
  }
  return [...rows.values()].map((row) => ({ ...row, actions: row.actions.join(", ") }));
}
