// The access of one user: what each grant comes from, and the steps that revoke it.
import { put, remove, seg } from "../../../api/client";
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

export interface Credentials {
  tokens: readonly APIKeyWithOwner[];
  sessions: readonly UserSession[];
  devices: readonly WireguardClient[];
}

export interface Step {
  text: string;
  run: () => Promise<unknown>;
}

/**
 * The steps of "Revoke everything", in this order: the account is suspended first, so that nothing new
 * is created meanwhile. An account that is suspended already keeps its state.
 */
export function revocation(user: User, { tokens, sessions, devices }: Credentials): Step[] {
  const own = `/api/v2/users/${seg(user.id)}`;
  const keys = (ids: readonly string[]) => async () => {
    for (const id of ids) await remove(`${own}/keys/${seg(id)}`);
  };
  const steps: (Step & { count: number })[] = [
    {
      count: user.status === "suspended" ? 0 : 1,
      text: `Suspend ${user.username}: no sign-in, token or OAuth2 application works any longer`,
      run: () => put(`${own}/status/suspend`, {}),
    },
    {
      count: sessions.length,
      text: `End ${counted(sessions.length, "session")}`,
      run: keys(sessions.map((session) => session.id)),
    },
    {
      count: tokens.length,
      text: `Delete ${counted(tokens.length, "token")}: ${tokens.map((token) => token.token_name).join(", ")}`,
      run: keys(tokens.map((token) => token.id)),
    },
    {
      count: devices.length,
      text: `Remove ${counted(devices.length, "device")}: ${devices.map((device) => device.name).join(", ")}`,
      run: async () => {
        for (const device of devices) await remove(`${own}/wireguard-clients/${seg(device.id)}`);
      },
    },
    {
      count: user.roles.length,
      text: `Remove the site ${plural(user.roles.length, "role")} ${user.roles.map((role) => role.display_name || role.name).join(", ")}`,
      run: () => put(`${own}/roles`, { roles: [] }),
    },
  ];
  return steps.filter((step) => step.count > 0);
}
