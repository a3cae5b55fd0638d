// Queries for users and groups. Keys are the paths.
import { queryOptions } from "@tanstack/react-query";

import { get, seg, withQuery } from "../client";
import type {
  AssignableRoles,
  GetUsersResponse,
  Group,
  Organization,
  OrganizationMemberWithUserData,
  User,
} from "../types";

export const PEOPLE_SHOWN = 25;

export const userByName = (name: string) =>
  queryOptions({
    queryKey: ["users", "one", name],
    queryFn: () => get<User>(`/api/v2/users/${seg(name)}`),
  });

export const organizationsOf = (user: string) =>
  queryOptions({
    queryKey: ["users", user, "organizations"],
    queryFn: () => get<Organization[]>(`/api/v2/users/${seg(user)}/organizations`),
  });

export const memberOf = (organization: string, user: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "members", user],
    queryFn: () =>
      get<OrganizationMemberWithUserData>(
        `/api/v2/organizations/${seg(organization)}/members/${seg(user)}`,
      ),
  });

export const users = (query: string, page = 1, size = PEOPLE_SHOWN) =>
  queryOptions({
    queryKey: ["users", "list", query, page, size],
    queryFn: () =>
      get<GetUsersResponse>(
        withQuery("/api/v2/users", {
          limit: size,
          offset: (page - 1) * size || undefined,
          q: query,
        }),
      ),
  });

/** The deployment's roles with the permissions of each. */
export const siteRoles = queryOptions({
  queryKey: ["users", "roles"],
  queryFn: () => get<AssignableRoles[]>("/api/v2/users/roles"),
  staleTime: 60_000,
});

export const groupsOf = (organization: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "groups"],
    queryFn: () => get<Group[]>(`/api/v2/organizations/${seg(organization)}/groups`),
  });

export const groupByName = (organization: string, name: string) =>
  queryOptions({
    queryKey: ["organizations", organization, "groups", name],
    queryFn: () => get<Group>(`/api/v2/organizations/${seg(organization)}/groups/${seg(name)}`),
  });
