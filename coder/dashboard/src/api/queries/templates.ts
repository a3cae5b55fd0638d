// Queries for templates and their versions.
import { queryOptions } from "@tanstack/react-query";

import { get, seg, withQuery } from "../client";
import type {
  ACLAvailable,
  Preset,
  Template,
  TemplateACL,
  TemplateBuildReport,
  TemplateBuilderBasesResponse,
  TemplateBuilderModulesResponse,
  TemplateBuildTokens,
  TemplateRollout,
  TemplateExample,
  TemplateVersion,
  TemplateVersionExternalAuth,
  TemplateVersionParameter,
  TemplateVersionVariable,
  WorkspaceResource,
} from "../types";

export const templates = (query = "") =>
  queryOptions({
    queryKey: ["templates", query],
    queryFn: () => get<Template[]>(withQuery("/api/v2/templates", { q: query })),
    staleTime: 10_000,
  });

export const templateById = (id: string) =>
  queryOptions({
    queryKey: ["template", id],
    queryFn: () => get<Template>(`/api/v2/templates/${id}`),
  });

/** `organization` is a name, or "default". */
export const templateByName = (organization: string, name: string) =>
  queryOptions({
    queryKey: ["template", organization, name],
    queryFn: () =>
      get<Template>(`/api/v2/organizations/${seg(organization)}/templates/${seg(name)}`),
  });

export const templateVersions = (template: string) =>
  queryOptions({
    queryKey: ["templates", template, "versions"],
    queryFn: async () =>
      (
        await get<TemplateVersion[]>(`/api/v2/templates/${template}/versions?include_archived=true`)
      ).reverse(),
  });

export const templateVersion = (id: string) =>
  queryOptions({
    queryKey: ["templateversions", id],
    queryFn: () => get<TemplateVersion>(`/api/v2/templateversions/${id}`),
  });

export const templateVersionByName = (organization: string, template: string, version: string) =>
  queryOptions({
    queryKey: ["templateversions", organization, template, version],
    queryFn: () =>
      get<TemplateVersion>(
        `/api/v2/organizations/${seg(organization)}/templates/${seg(template)}/versions/${seg(version)}`,
      ),
  });

export const previousVersion = (organization: string, template: string, version: string) =>
  queryOptions({
    queryKey: ["templateversions", organization, template, version, "previous"],
    queryFn: () =>
      get<TemplateVersion>(
        `/api/v2/organizations/${seg(organization)}/templates/${seg(template)}/versions/${seg(version)}/previous`,
      ),
    retry: false,
  });

export const versionResources = (version: string) =>
  queryOptions({
    queryKey: ["templateversions", version, "resources"],
    queryFn: () => get<WorkspaceResource[]>(`/api/v2/templateversions/${version}/resources`),
  });

export const versionVariables = (version: string) =>
  queryOptions({
    queryKey: ["templateversions", version, "variables"],
    queryFn: () => get<TemplateVersionVariable[]>(`/api/v2/templateversions/${version}/variables`),
  });

/** Parameters as the import recorded them, regardless of the values entered so far. */
export const versionParameters = (version: string) =>
  queryOptions({
    queryKey: ["templateversions", version, "rich-parameters"],
    queryFn: async () =>
      (await get<TemplateVersionParameter[] | null>(
        `/api/v2/templateversions/${seg(version)}/rich-parameters`,
      )) ?? [],
    staleTime: Infinity,
  });

export const versionPresets = (version: string) =>
  queryOptions({
    queryKey: ["templateversions", version, "presets"],
    queryFn: async () =>
      (await get<Preset[] | null>(`/api/v2/templateversions/${version}/presets`)) ?? [],
  });

export const versionExternalAuth = (version: string, user: string) =>
  queryOptions({
    queryKey: ["templateversions", version, "external-auth", user],
    queryFn: () =>
      get<TemplateVersionExternalAuth[]>(
        withQuery(`/api/v2/templateversions/${version}/external-auth`, { user_id: user }),
      ),
  });

export const templateExamples = queryOptions({
  queryKey: ["templates", "examples"],
  queryFn: () => get<TemplateExample[]>("/api/v2/templates/examples"),
  staleTime: Infinity,
});

/** The bases of the template builder. Refused when an administrator disabled the builder. */
export const builderBases = queryOptions({
  queryKey: ["templates", "builder", "bases"],
  queryFn: async () =>
    (await get<TemplateBuilderBasesResponse>("/api/v2/templatebuilder/bases")).bases,
  staleTime: Infinity,
  retry: false,
});

/** The modules that work with a base. */
export const builderModules = (base: string) =>
  queryOptions({
    queryKey: ["templates", "builder", "modules", base],
    queryFn: async () =>
      (
        await get<TemplateBuilderModulesResponse>(
          withQuery("/api/v2/templatebuilder/modules", { base }),
        )
      ).modules,
    staleTime: Infinity,
  });

export const templateAcl = (template: string) =>
  queryOptions({
    queryKey: ["templates", template, "acl"],
    queryFn: () => get<TemplateACL>(`/api/v2/templates/${template}/acl`),
  });

export const templateBuildTokens = (template: string) =>
  queryOptions({
    queryKey: ["templates", template, "build-tokens"],
    queryFn: () => get<TemplateBuildTokens>(`/api/v2/templates/${template}/build-tokens`),
  });

export const templateBuildReport = (template: string) =>
  queryOptions({
    queryKey: ["templates", template, "build-report"],
    queryFn: () => get<TemplateBuildReport>(`/api/v2/templates/${template}/build-report`),
    staleTime: 60_000,
  });

const ROLLOUT_REFRESH_MS = 10_000;

/** The latest rollouts, the latest first; at most the first one is open. For administrators. */
export const templateRollouts = (template: string) =>
  queryOptions({
    queryKey: ["templates", template, "rollouts"],
    queryFn: () => get<TemplateRollout[]>(`/api/v2/templates/${template}/rollouts`),
    refetchInterval: (query) =>
      query.state.data?.[0]?.progress === null || !query.state.data?.[0]
        ? false
        : ROLLOUT_REFRESH_MS,
  });

export const templateAclAvailable = (template: string, query: string) =>
  queryOptions({
    queryKey: ["templates", template, "acl", "available", query],
    queryFn: () =>
      get<ACLAvailable>(
        withQuery(`/api/v2/templates/${template}/acl/available`, { q: query, limit: 25 }),
      ),
  });
