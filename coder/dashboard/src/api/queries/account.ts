// A user's own objects: settings, tokens, links, devices. Keys follow the paths.
import { queryOptions } from "@tanstack/react-query";

import { get, seg, withQuery } from "../client";
import type {
  APIKeyWithOwner,
  ExternalAPIKeyScopes,
  GitSSHKey,
  Group,
  ListUserExternalAuthResponse,
  NotificationMethodsResponse,
  NotificationPreference,
  NotificationTemplate,
  OAuth2ProviderApp,
  TokenConfig,
  UserLoginType,
  UserQuietHoursScheduleResponse,
  UserSecret,
  UserSession,
  WireguardClient,
  WireguardServer,
} from "../types";

export const loginType = queryOptions({
  queryKey: ["users", "me", "login-type"],
  queryFn: () => get<UserLoginType>("/api/v2/users/me/login-type"),
});

export const myGroups = (user: string) =>
  queryOptions({
    queryKey: ["groups", "of", user],
    queryFn: async () =>
      (await get<Group[] | null>(withQuery("/api/v2/groups", { has_member: user }))) ?? [],
  });

export const tokens = (everyone: boolean, expired: boolean) =>
  queryOptions({
    queryKey: ["users", "me", "keys", everyone, expired],
    queryFn: async () =>
      (await get<APIKeyWithOwner[] | null>(
        withQuery("/api/v2/users/me/keys/tokens", {
          include_all: everyone,
          include_expired: expired,
        }),
      )) ?? [],
  });

/** Tokens of one user that still work. */
export const tokensOf = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "tokens"],
    queryFn: async () =>
      (await get<APIKeyWithOwner[] | null>(`/api/v2/users/${seg(user)}/keys/tokens`)) ?? [],
  });

export const sessionsOf = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "sessions"],
    queryFn: () => get<UserSession[]>(`/api/v2/users/${seg(user)}/sessions`),
  });

export const tokenConfig = queryOptions({
  queryKey: ["users", "me", "tokenconfig"],
  queryFn: () => get<TokenConfig>("/api/v2/users/me/keys/tokens/tokenconfig"),
});

export const tokenScopes = queryOptions({
  queryKey: ["auth", "scopes"],
  queryFn: () => get<ExternalAPIKeyScopes>("/api/v2/auth/scopes"),
  staleTime: Infinity,
});

export const gitSshKey = queryOptions({
  queryKey: ["users", "me", "gitsshkey"],
  queryFn: () => get<GitSSHKey>("/api/v2/users/me/gitsshkey"),
});

export const externalLinks = queryOptions({
  queryKey: ["external-auth"],
  queryFn: () => get<ListUserExternalAuthResponse>("/api/v2/external-auth"),
});

export const quietHours = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "quiet-hours"],
    queryFn: () => get<UserQuietHoursScheduleResponse>(`/api/v2/users/${seg(user)}/quiet-hours`),
  });

export const secrets = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "secrets"],
    queryFn: () => get<UserSecret[]>(`/api/v2/users/${seg(user)}/secrets`),
  });

export const notificationPreferences = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "notifications"],
    queryFn: async () =>
      (await get<NotificationPreference[] | null>(
        `/api/v2/users/${seg(user)}/notifications/preferences`,
      )) ?? [],
  });

export const notificationTemplates = (kind: "system" | "custom") =>
  queryOptions({
    queryKey: ["notifications", "templates", kind],
    queryFn: async () =>
      (await get<NotificationTemplate[] | null>(`/api/v2/notifications/templates/${kind}`)) ?? [],
  });

export const dispatchMethods = queryOptions({
  queryKey: ["notifications", "methods"],
  queryFn: () => get<NotificationMethodsResponse>("/api/v2/notifications/dispatch-methods"),
});

export const authorizedApps = (user: string) =>
  queryOptions({
    queryKey: ["oauth2-provider", "apps", user],
    queryFn: async () =>
      (await get<OAuth2ProviderApp[] | null>(
        withQuery("/api/v2/oauth2-provider/apps", { user_id: user }),
      )) ?? [],
    retry: false,
  });

export const wireguardServer = queryOptions({
  queryKey: ["wireguard"],
  queryFn: () => get<WireguardServer>("/api/v2/wireguard"),
});

const DEVICES_REFRESH_MS = 5000;

export const wireguardClients = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "wireguard-clients"],
    queryFn: () => get<WireguardClient[]>(`/api/v2/users/${seg(user)}/wireguard-clients`),
    refetchInterval: DEVICES_REFRESH_MS,
  });
