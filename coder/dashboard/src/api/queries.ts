// What pages ask for, by noun. Keys are the paths, so that one invalidation reaches everything below a path.
import { queryOptions } from "@tanstack/react-query";

import { ApiError, get } from "./client";
import type {
  AppHostResponse,
  AuthMethods,
  BuildInfoResponse,
  ExternalAgentCredentials,
  Template,
  User,
  Workspace,
  WorkspacesResponse,
} from "./types";

const LIST_REFRESH_MS = 2500; // a list is small; a socket per row would cost the server more

export const me = queryOptions({
  queryKey: ["users", "me"],
  queryFn: async (): Promise<User | null> => {
    try {
      return await get<User>("/api/v2/users/me");
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

export const hasFirstUser = queryOptions({
  queryKey: ["users", "first"],
  queryFn: async (): Promise<boolean> => {
    try {
      await get("/api/v2/users/first");
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return false;
      throw error;
    }
  },
});

export const authMethods = queryOptions({
  queryKey: ["users", "authmethods"],
  queryFn: () => get<AuthMethods>("/api/v2/users/authmethods"),
});

export const buildInfo = queryOptions({
  queryKey: ["buildinfo"],
  queryFn: () => get<BuildInfoResponse>("/api/v2/buildinfo"),
  staleTime: Infinity,
});

export const appHost = queryOptions({
  queryKey: ["applications", "host"],
  queryFn: () => get<AppHostResponse>("/api/v2/applications/host"),
  staleTime: Infinity,
});

export const PAGE_SIZE = 25;

export const workspaces = (query: string, page: number) =>
  queryOptions({
    queryKey: ["workspaces", query, page],
    queryFn: () => get<WorkspacesResponse>(`/api/v2/workspaces?limit=${PAGE_SIZE}&offset=${(page - 1) * PAGE_SIZE}&q=${encodeURIComponent(query)}`),
    refetchInterval: LIST_REFRESH_MS,
  });

export const workspaceByName = (owner: string, name: string) =>
  queryOptions({
    queryKey: ["workspace", owner, name],
    queryFn: () =>
      get<Workspace>(`/api/v2/users/${encodeURIComponent(owner)}/workspace/${encodeURIComponent(name)}?include_deleted=true`),
  });

export const templates = queryOptions({
  queryKey: ["templates"],
  queryFn: () => get<Template[]>("/api/v2/templates"),
});

export const externalCredentials = (workspace: string, agent: string) =>
  queryOptions({
    queryKey: ["workspaces", workspace, "external-agent", agent],
    queryFn: () =>
      get<ExternalAgentCredentials>(`/api/v2/workspaces/${workspace}/external-agent/${encodeURIComponent(agent)}/credentials`),
  });
