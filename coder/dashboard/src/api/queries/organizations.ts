// An organization: members, roles, provisioners, identity provider settings.
import { queryOptions } from "@tanstack/react-query";

import { get, seg, withQuery } from "../client";
import type {
  AssignableRoles,
  GroupSyncSettings,
  PaginatedMembersResponse,
  ProvisionerDaemon,
  ProvisionerDaemonHealth,
  ProvisionerJob,
  ProvisionerKeyDaemons,
  RoleSyncSettings,
} from "../types";
import { PEOPLE_SHOWN } from "./people";

const LIVE_MS = 5000; // daemons and jobs come and go; the list is small

const path = (organization: string, rest: string) =>
  `/api/v2/organizations/${seg(organization)}${rest}`;

export const members = (organization: string, query: string, page: number, size = PEOPLE_SHOWN) =>
  queryOptions({
    queryKey: ["organizations", organization, "members", query, page, size],
    queryFn: () =>
      get<PaginatedMembersResponse>(
        withQuery(path(organization, "/paginated-members"), {
          limit: size,
          offset: (page - 1) * size || undefined,
          q: query,
        }),
      ),
  });

export const organizationRoles = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "members", "roles"],
    queryFn: () => get<AssignableRoles[]>(path(organization, "/members/roles")),
  });

export const daemons = (
  organization: string,
  terms: { status?: string | undefined; tags?: string | undefined; ids?: string | undefined } = {},
) =>
  queryOptions({
    queryKey: ["organizations", organization, "provisionerdaemons", terms],
    queryFn: () =>
      get<ProvisionerDaemon[] | null>(
        withQuery(path(organization, "/provisionerdaemons"), {
          limit: 200,
          offline: true,
          ...terms,
        }),
      ),
    refetchInterval: LIVE_MS,
  });

export const daemonHealth = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "provisionerdaemons", "health"],
    queryFn: () => get<ProvisionerDaemonHealth[]>(path(organization, "/provisionerdaemons/health")),
    refetchInterval: LIVE_MS,
    retry: false,
  });

export const provisionerJobs = (
  organization: string,
  terms: { status?: string | undefined; ids?: string | undefined } = {},
) =>
  queryOptions({
    queryKey: ["organizations", organization, "provisionerjobs", terms],
    queryFn: () =>
      get<ProvisionerJob[] | null>(
        withQuery(path(organization, "/provisionerjobs"), { limit: 100, ...terms }),
      ),
    refetchInterval: LIVE_MS,
  });

export const keyDaemons = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "provisionerkeys", "daemons"],
    queryFn: () => get<ProvisionerKeyDaemons[]>(path(organization, "/provisionerkeys/daemons")),
    refetchInterval: LIVE_MS,
  });

export const groupSync = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "idpsync", "groups"],
    queryFn: () => get<GroupSyncSettings>(path(organization, "/settings/idpsync/groups")),
  });

export const roleSync = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "idpsync", "roles"],
    queryFn: () => get<RoleSyncSettings>(path(organization, "/settings/idpsync/roles")),
  });

/**
 * Values that members of this organization have in a claim; null for a field that no member has.
 */
export const claimValues = (organization: string | null, field: string) =>
  queryOptions({
    queryKey: ["idpsync", organization, "field-values", field],
    queryFn: () =>
      get<string[] | null>(
        withQuery(
          organization
            ? path(organization, "/settings/idpsync/field-values")
            : "/api/v2/settings/idpsync/field-values",
          { claimField: field },
        ),
      ),
    enabled: field !== "",
    retry: false,
  });
