// Deployment administration: settings, usage, logs, notifications, applications.
import { queryOptions } from "@tanstack/react-query";

import { get, withQuery } from "../client";
import type {
  AuditLogResponse,
  ConnectionLogResponse,
  DAUsResponse,
  DeploymentStats,
  ExternalAuthConfig,
  GetUserStatusCountsResponse,
  NotificationDelivery,
  NotificationMethodsResponse,
  NotificationsSettings,
  NotificationTemplate,
  OAuth2ProviderApp,
  OAuth2ProviderAppSecret,
  OAuth2ProviderSettings,
  OrganizationSyncSettings,
  UpdateCheckResponse,
  UserStatusChangeCount,
} from "../types";

/** An option of the server, in the form of `GET /deployment/config`. */
export interface DeploymentOption {
  name: string;
  description?: string;
  flag?: string;
  env?: string;
  yaml?: string;
  /** Absent for secrets. */
  value?: unknown;
  default?: string;
  value_source?: "" | "default" | "env" | "flag" | "yaml";
  hidden?: boolean;
  annotations?: Record<string, string>;
  group?: OptionGroup;
}

export interface OptionGroup {
  name: string;
  description?: string;
  parent?: OptionGroup;
}

export interface DeploymentConfig {
  config: Record<string, unknown> & { external_auth?: ExternalAuthConfig[] | null };
  options: DeploymentOption[];
}

export const deploymentConfig = queryOptions({
  queryKey: ["deployment", "config"],
  queryFn: () => get<DeploymentConfig>("/api/v2/deployment/config"),
  staleTime: 60_000,
});

/** The newest release of the administrator's list; the server's own without one. */
export const updateCheck = queryOptions({
  queryKey: ["updatecheck"],
  queryFn: () => get<UpdateCheckResponse>("/api/v2/updatecheck"),
  staleTime: 60 * 60_000,
});

const STATS_MS = 30_000;

export const deploymentStats = queryOptions({
  queryKey: ["deployment", "stats"],
  queryFn: () => get<DeploymentStats>("/api/v2/deployment/stats"),
  refetchInterval: STATS_MS,
});

export const dailyUsers = queryOptions({
  queryKey: ["insights", "daus"],
  queryFn: () =>
    get<DAUsResponse>(
      withQuery("/api/v2/insights/daus", {
        tz_offset: String(Math.trunc(new Date().getTimezoneOffset() / 60)),
      }),
    ),
  staleTime: 60_000,
});

export const userStatusCounts = queryOptions({
  queryKey: ["insights", "user-status-counts"],
  queryFn: async () =>
    (
      await get<GetUserStatusCountsResponse>(
        withQuery("/api/v2/insights/user-status-counts", {
          timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
        }),
      )
    ).status_counts as Record<string, UserStatusChangeCount[]>,
  staleTime: 60_000,
});

export const experiments = queryOptions({
  queryKey: ["experiments"],
  queryFn: () => get<string[]>("/api/v2/experiments"),
  staleTime: 60_000,
});

export const safeExperiments = queryOptions({
  queryKey: ["experiments", "available"],
  queryFn: async () => (await get<{ safe: string[] }>("/api/v2/experiments/available")).safe,
  staleTime: 60_000,
});

const LOG_SHOWN = 25;

export const auditLog = (query: string, page: number, size = LOG_SHOWN) =>
  queryOptions({
    queryKey: ["audit", query, page, size],
    queryFn: () =>
      get<AuditLogResponse>(
        withQuery("/api/v2/audit", { limit: size, offset: (page - 1) * size, q: query }),
      ),
  });

export const connectionLog = (query: string, page: number, size = LOG_SHOWN) =>
  queryOptions({
    queryKey: ["connectionlog", query, page, size],
    queryFn: () =>
      get<ConnectionLogResponse>(
        withQuery("/api/v2/connectionlog", {
          limit: size,
          offset: (page - 1) * size,
          q: query,
        }),
      ),
  });

export const systemTemplates = queryOptions({
  queryKey: ["notifications", "templates", "system"],
  queryFn: () => get<NotificationTemplate[]>("/api/v2/notifications/templates/system"),
});
export const customTemplates = queryOptions({
  queryKey: ["notifications", "templates", "custom"],
  queryFn: () => get<NotificationTemplate[]>("/api/v2/notifications/templates/custom"),
});
export const dispatchMethods = queryOptions({
  queryKey: ["notifications", "dispatch-methods"],
  queryFn: () => get<NotificationMethodsResponse>("/api/v2/notifications/dispatch-methods"),
  staleTime: 60_000,
});
/** The options that are set, out of all options. */
export const notificationDelivery = queryOptions({
  queryKey: ["notifications", "delivery"],
  queryFn: () => get<NotificationDelivery>("/api/v2/notifications/delivery"),
  staleTime: 60_000,
});
export const notificationSettings = queryOptions({
  queryKey: ["notifications", "settings"],
  queryFn: () => get<NotificationsSettings>("/api/v2/notifications/settings"),
});

export const oauth2Apps = queryOptions({
  queryKey: ["oauth2-provider", "apps"],
  queryFn: () => get<OAuth2ProviderApp[] | null>("/api/v2/oauth2-provider/apps"),
  retry: false,
});
export const oauth2App = (id: string) =>
  queryOptions({
    queryKey: ["oauth2-provider", "apps", id],
    queryFn: () => get<OAuth2ProviderApp>(`/api/v2/oauth2-provider/apps/${id}`),
    retry: false,
  });
export const oauth2Secrets = (id: string) =>
  queryOptions({
    queryKey: ["oauth2-provider", "apps", id, "secrets"],
    queryFn: () =>
      get<OAuth2ProviderAppSecret[] | null>(`/api/v2/oauth2-provider/apps/${id}/secrets`),
    retry: false,
  });
export const oauth2Settings = queryOptions({
  queryKey: ["oauth2-provider", "settings"],
  queryFn: () => get<OAuth2ProviderSettings>("/api/v2/oauth2-provider/settings"),
  retry: false,
});

export const organizationSync = queryOptions({
  queryKey: ["settings", "idpsync", "organization"],
  queryFn: () => get<OrganizationSyncSettings>("/api/v2/settings/idpsync/organization"),
});
