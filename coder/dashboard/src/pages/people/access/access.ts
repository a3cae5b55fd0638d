// The access of one user: what each grant comes from, and the steps that revoke it.
import { put, reasonOf, removeIfPresent, seg } from "../../../api/client";
import type {
  APIKeyWithOwner,
  Group,
  User,
  UserSession,
  WireguardClient,
} from "../../../api/types";
import { programName } from "../../../features/person/user-agents";
import { counted, plural } from "../../../lib/words";

/** The server keeps no origin of a role: a user of an identity provider may have it from either. */
export const roleOrigin = (user: Pick<User, "login_type">): string =>
  user.login_type === "oidc" || user.login_type === "github"
    ? "Assigned by hand or by the identity provider"
    : "Assigned by hand";

export function groupOrigin(group: Pick<Group, "id" | "organization_id" | "source">): string {
  if (group.id === group.organization_id) return "Every member of the organization";
  return group.source === "oidc" ? "Identity provider" : "Added by hand";
}

export const sessionName = (session: Pick<UserSession, "user_agent" | "ip_address">): string =>
  `${programName(session.user_agent) || "Unknown program"} from ${session.ip_address || "an unknown address"}`;

/** The scopes of a token; the two names of "everything" in words. */
export function permissionsOf({
  scope,
  scopes,
}: Pick<APIKeyWithOwner, "scope" | "scopes">): string {
  const names = scopes.length > 0 ? scopes : [scope];
  return names.some((name) => name === "all" || name === "coder:all")
    ? "all permissions of the user"
    : names.join(", ");
}

/** A list of credentials, how to load it, and why it is not known, if it is not. */
export interface Listed<T> {
  /** undefined while it is not known, which is not the same as empty. */
  items: readonly T[] | undefined;
  /** Why it is not known. */
  problem: string;
  /** null for a list that the viewer may not see. The server sends such a list as an empty one. */
  load: (() => Promise<readonly T[]>) | null;
}

export interface Credentials {
  tokens: Listed<APIKeyWithOwner>;
  sessions: Listed<UserSession>;
  devices: Listed<WireguardClient>;
}

/** A credential, a role or a state that could not be revoked. */
export interface Unrevoked {
  name: string;
  reason: string;
}

export interface Step {
  text: string;
  /** Return what was not revoked; it never rejects. */
  run: () => Promise<readonly Unrevoked[]>;
}

export interface Revocation {
  steps: readonly Step[];
  /** Lists that no step touches, because the viewer may not see them. */
  hidden: readonly Unrevoked[];
}

/** Run one request. */
async function attempt(name: string, act: () => Promise<unknown>): Promise<Unrevoked[]> {
  try {
    await act();
    return [];
  } catch (error) {
    return [{ name, reason: reasonOf(error) }];
  }
}

interface Kind<T extends { id: string }> {
  verb: string;
  noun: string;
  list: Listed<T>;
  nameOf: (item: T) => string;
  discard: (id: string) => Promise<void>;
  /** Whether the step names its items. */
  named: boolean;
}

/** The step that deletes all items of one kind. The list is loaded again: it may have grown meanwhile. */
function deletion<T extends { id: string }>(kind: Kind<T>): Step[] {
  const { verb, noun, list, nameOf, discard } = kind;
  const { items, load } = list;
  if (load === null || items?.length === 0) return [];
  const names = kind.named ? `: ${items?.map(nameOf).join(", ") ?? ""}` : "";
  return [
    {
      text: items
        ? `${verb} ${counted(items.length, noun)}${names}`
        : `${verb} all ${plural(2, noun)}: the list did not load${list.problem ? ` (${list.problem})` : ""} and is requested again`,
      run: async () => {
        let current: readonly T[];
        try {
          current = await load();
        } catch (error) {
          return [{ name: plural(2, noun), reason: reasonOf(error) }];
        }
        const left: Unrevoked[] = [];
        for (const item of current)
          left.push(...(await attempt(`${noun} ${nameOf(item)}`, () => discard(item.id))));
        return left;
      },
    },
  ];
}

/**
 * The steps of "Revoke everything", in this order: the account is suspended first, so that nothing new
 * is created meanwhile. Steps that have no effect are left out, so that a repetition does the rest.
 */
export function revocation(user: User, { tokens, sessions, devices }: Credentials): Revocation {
  const own = `/api/v2/users/${seg(user.id)}`;
  const roles = user.roles.map((role) => role.display_name || role.name).join(", ");
  const discardKey = (id: string) => removeIfPresent(`${own}/keys/${seg(id)}`);
  const suspension: Step = {
    text: `Suspend ${user.username}: no sign-in, token or OAuth2 application works any longer`,
    run: () => attempt("suspension", () => put(`${own}/status/suspend`, {})),
  };
  const unassignment: Step = {
    text: `Remove the site ${plural(user.roles.length, "role")} ${roles}`,
    run: () => attempt("site roles", () => put(`${own}/roles`, { roles: [] })),
  };
  const hidden = { sessions, tokens, devices };
  return {
    steps: [
      ...(user.status === "suspended" ? [] : [suspension]),
      ...deletion({
        verb: "End",
        noun: "session",
        list: sessions,
        nameOf: sessionName,
        discard: discardKey,
        named: false,
      }),
      ...deletion({
        verb: "Delete",
        noun: "token",
        list: tokens,
        nameOf: (token) => token.token_name,
        discard: discardKey,
        named: true,
      }),
      ...deletion({
        verb: "Remove",
        noun: "device",
        list: devices,
        nameOf: (device) => device.name,
        discard: (id) => removeIfPresent(`${own}/wireguard-clients/${seg(id)}`),
        named: true,
      }),
      ...(user.roles.length > 0 ? [unassignment] : []),
    ],
    hidden: Object.entries(hidden).flatMap(([name, { load, problem }]) =>
      load === null ? [{ name, reason: problem }] : [],
    ),
  };
}

/** Run all steps, also after a failure. Return what was not revoked. */
export async function revoke(steps: readonly Step[]): Promise<readonly Unrevoked[]> {
  const left: Unrevoked[] = [];
  for (const step of steps) left.push(...(await step.run()));
  return left;
}
