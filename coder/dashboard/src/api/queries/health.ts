// Health of the deployment, for administrators.
import { queryOptions } from "@tanstack/react-query";

import { get } from "../client";
import type { HealthcheckReport, HealthSettings, Region, WorkspaceProxy } from "../types";

const REPORT_REFRESH_MS = 60_000;

export const healthReport = queryOptions({
  queryKey: ["debug", "health"],
  queryFn: () => get<HealthcheckReport>("/api/v2/debug/health"),
  refetchInterval: REPORT_REFRESH_MS,
  staleTime: 10_000,
  retry: false,
});

export const healthSettings = queryOptions({
  queryKey: ["debug", "health", "settings"],
  queryFn: () => get<HealthSettings>("/api/v2/debug/health/settings"),
});

export const regions = queryOptions({
  queryKey: ["regions", "all"],
  queryFn: async () => (await get<{ regions: Region[] }>("/api/v2/regions")).regions,
});

const PROXIES_REFRESH_MS = 10_000;

export const workspaceProxies = queryOptions({
  queryKey: ["workspaceproxies"],
  queryFn: async () =>
    (await get<{ regions: WorkspaceProxy[] }>("/api/v2/workspaceproxies")).regions,
  refetchInterval: PROXIES_REFRESH_MS,
});
