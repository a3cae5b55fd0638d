// Queries for workspaces. Keys are the paths, so that one invalidation reaches everything below.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { get, seg, withQuery } from "../client";
import type {
  AgentConnectionInfo,
  AgentDisconnect,
  AgentLights,
  ExternalAgentCredentials,
  OfferedVersion,
  ProvisionerJobWhy,
  SSHConfigResponse,
  Workspace,
  WorkspaceACL,
  WorkspaceAgentListContainersResponse,
  WorkspaceAgentListeningPortsResponse,
  WorkspaceAgentPortShares,
  WorkspaceBuild,
  WorkspaceBuildParameter,
  WorkspaceBuildTimings,
  WorkspaceQuota,
  WorkspacesResponse,
  WorkspaceSharingSettings,
} from "../types";

const LIST_REFRESH_MS = 2500; // a list is small; a socket per row would cost the server more
export const PAGE_SIZE = 25;

export const workspaces = (query: string, page: number, size = PAGE_SIZE) =>
  queryOptions({
    queryKey: ["workspaces", query, page, size],
    queryFn: () =>
      get<WorkspacesResponse>(
        withQuery("/api/v2/workspaces", {
          limit: size,
          offset: (page - 1) * size || undefined,
          q: query,
        }),
      ),
    refetchInterval: LIST_REFRESH_MS,
  });

/** External machines whose agent has not connected in time. */
export const UNATTACHED = "has_external_agent:true has-agent:timeout status:running";

/** Counted by the server: statistics count such workspaces as running. */
export const unattachedCount = queryOptions({
  queryKey: ["workspaces", UNATTACHED, "count"],
  queryFn: () =>
    get<WorkspacesResponse>(withQuery("/api/v2/workspaces", { limit: 1, q: UNATTACHED })),
  select: (page) => page.count,
  refetchInterval: 60_000,
});

const OFFERS_REFRESH_MS = 30_000;
const OFFERS_AT_ONCE = 100; // the address of a request holds no more ids

/** The versions to which updates bring these workspaces: during a rollout not always the active one. */
export const offeredVersions = (ids: readonly string[]) =>
  queryOptions({
    queryKey: ["workspaces", "offered", ids.join()],
    queryFn: async () => {
      const parts = [];
      for (let start = 0; start < ids.length; start += OFFERS_AT_ONCE)
        parts.push(ids.slice(start, start + OFFERS_AT_ONCE));
      const answers = await Promise.all(
        parts.map((part) =>
          get<OfferedVersion[]>(
            withQuery("/api/v2/workspaces/offered-versions", { ids: part.join() }),
          ),
        ),
      );
      return answers.flat();
    },
    enabled: ids.length > 0,
    refetchInterval: OFFERS_REFRESH_MS,
  });

export const workspaceByName = (owner: string, name: string) =>
  queryOptions({
    queryKey: ["workspace", owner, name],
    queryFn: () =>
      get<Workspace>(`/api/v2/users/${seg(owner)}/workspace/${seg(name)}?include_deleted=true`),
  });

export const externalCredentials = (workspace: string, agent: string) =>
  queryOptions({
    queryKey: ["workspaces", workspace, "external-agent", agent],
    queryFn: () =>
      get<ExternalAgentCredentials>(
        `/api/v2/workspaces/${workspace}/external-agent/${seg(agent)}/credentials`,
      ),
  });

const BUILDS_SHOWN = 25;

/**
 * Newest first, page by page. The next page begins after the builds loaded so far: the API cannot
 * list the builds older than a given one.
 */
export const workspaceBuilds = (workspace: string) =>
  infiniteQueryOptions({
    queryKey: ["workspace", workspace, "builds"],
    queryFn: ({ pageParam }) =>
      get<WorkspaceBuild[]>(
        withQuery(`/api/v2/workspaces/${workspace}/builds`, {
          limit: BUILDS_SHOWN,
          offset: pageParam || undefined,
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (
      last: readonly WorkspaceBuild[],
      pages: readonly (readonly WorkspaceBuild[])[],
    ) => (last.length < BUILDS_SHOWN ? undefined : pages.length * BUILDS_SHOWN),
  });

export const buildByNumber = (owner: string, name: string, number: string) =>
  queryOptions({
    queryKey: ["workspace", owner, name, "builds", number],
    queryFn: () =>
      get<WorkspaceBuild>(
        `/api/v2/users/${seg(owner)}/workspace/${seg(name)}/builds/${seg(number)}`,
      ),
  });

export const buildParameters = (build: string) =>
  queryOptions({
    queryKey: ["workspacebuilds", build, "parameters"],
    queryFn: () => get<WorkspaceBuildParameter[]>(`/api/v2/workspacebuilds/${build}/parameters`),
  });

export const buildTimings = (build: string) =>
  queryOptions({
    queryKey: ["workspacebuilds", build, "timings"],
    queryFn: () => get<WorkspaceBuildTimings>(`/api/v2/workspacebuilds/${build}/timings`),
  });

const REASONS_REFRESH_MS = 3000;

/** The server's explanation of why a job waits. */
export const jobReasons = (organization: string, job: string) =>
  queryOptions({
    queryKey: ["provisionerjobs", job, "why"],
    queryFn: () =>
      get<ProvisionerJobWhy>(`/api/v2/organizations/${organization}/provisionerjobs/${job}/why`),
    refetchInterval: REASONS_REFRESH_MS,
    retry: false,
  });

export const workspaceQuota = (organization: string, user: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "members", user, "quota"],
    queryFn: () =>
      get<WorkspaceQuota>(
        `/api/v2/organizations/${seg(organization)}/members/${seg(user)}/workspace-quota`,
      ),
    retry: false,
  });

export const sshSettings = queryOptions({
  queryKey: ["deployment", "ssh"],
  queryFn: () => get<SSHConfigResponse>("/api/v2/deployment/ssh"),
  staleTime: Infinity,
});

const HEALTH_REFRESH_MS = 15_000; // twice per reading of the agent

export const agentHealthIndicators = (agent: string) =>
  queryOptions({
    queryKey: ["workspaceagents", agent, "lights"],
    queryFn: () => get<AgentLights>(`/api/v2/workspaceagents/${agent}/lights`),
    refetchInterval: HEALTH_REFRESH_MS,
    retry: false,
  });

/** How the deployment lets clients reach agents. */
export const agentConnection = (agent: string) =>
  queryOptions({
    queryKey: ["workspaceagents", agent, "connection"],
    queryFn: () => get<AgentConnectionInfo>(`/api/v2/workspaceagents/${agent}/connection`),
    staleTime: 60_000,
  });

/** Newest first. */
export const agentDisconnects = (agent: string) =>
  queryOptions({
    queryKey: ["workspaceagents", agent, "disconnects"],
    queryFn: () => get<AgentDisconnect[]>(`/api/v2/workspaceagents/${agent}/disconnects`),
    refetchInterval: HEALTH_REFRESH_MS,
    retry: false,
  });

const PORTS_REFRESH_MS = 5000;

export const listeningPorts = (agent: string) =>
  queryOptions({
    queryKey: ["workspaceagents", agent, "listening-ports"],
    queryFn: () =>
      get<WorkspaceAgentListeningPortsResponse>(`/api/v2/workspaceagents/${agent}/listening-ports`),
    refetchInterval: PORTS_REFRESH_MS,
  });

const SHARES_REFRESH_MS = 15_000; // shares expire without notice

export const portShares = (workspace: string) =>
  queryOptions({
    queryKey: ["workspaces", workspace, "port-share"],
    queryFn: () => get<WorkspaceAgentPortShares>(`/api/v2/workspaces/${workspace}/port-share`),
    refetchInterval: SHARES_REFRESH_MS,
  });

export const containers = (agent: string) =>
  queryOptions({
    queryKey: ["workspaceagents", agent, "containers"],
    queryFn: () =>
      get<WorkspaceAgentListContainersResponse>(`/api/v2/workspaceagents/${agent}/containers`),
    retry: false,
    staleTime: 30_000,
  });

export const workspaceAcl = (workspace: string) =>
  queryOptions({
    queryKey: ["workspaces", workspace, "acl"],
    queryFn: () => get<WorkspaceACL>(`/api/v2/workspaces/${workspace}/acl`),
  });

export const sharingSettings = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "workspace-sharing"],
    queryFn: () =>
      get<WorkspaceSharingSettings>(
        `/api/v2/organizations/${organization}/settings/workspace-sharing`,
      ),
    retry: false,
  });
