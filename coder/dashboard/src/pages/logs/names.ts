// Names of the users, groups, templates and versions that an audit entry knows by their ids only.
import { queryOptions, useQueries } from "@tanstack/react-query";

import { get, seg } from "../../api/client";
import type { Group, Organization, Template, TemplateVersion, User } from "../../api/types";
import { groupName } from "../../features/person/everyone";
import { changes } from "./audit";

type Kind = "user" | "group" | "organization" | "template" | "version";
export interface Reference {
  kind: Kind;
  id: string;
}

/** The kind of object whose ids a field contains. Other fields keep their ids. */
const FIELDS: Readonly<Record<string, Kind>> = {
  active_version_id: "version",
  created_by: "user",
  group_acl: "group",
  initiator_id: "user",
  organization_id: "organization",
  owner_id: "user",
  template_id: "template",
  template_version_id: "version",
  user_acl: "user",
  user_id: "user",
};
const ID = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g;
const NIL = "00000000-0000-0000-0000-000000000000";
/** Names looked up for one entry: each is a request. */
const MOST = 20;

/** The objects that the changes of an entry mention by id, each once. */
export function referencesOf(diff: unknown): Reference[] {
  const found = new Map<string, Reference>();
  for (const { field, before, after } of changes(diff)) {
    const kind = FIELDS[field];
    if (kind === undefined) continue;
    for (const id of `${before ?? ""} ${after ?? ""}`.match(ID) ?? [])
      if (id !== NIL) found.set(id, { kind, id });
  }
  return [...found.values()].slice(0, MOST);
}

/** The text with the known names in place of their ids. */
export const withNames = (text: string, names: ReadonlyMap<string, string>): string =>
  text.replace(ID, (id) => names.get(id) ?? id);

async function nameOf({ kind, id }: Reference): Promise<string> {
  switch (kind) {
    case "user":
      return (await get<User>(`/api/v2/users/${seg(id)}`)).username;
    case "group":
      return groupName(await get<Group>(`/api/v2/groups/${seg(id)}`));
    case "organization":
      return (await get<Organization>(`/api/v2/organizations/${seg(id)}`)).name;
    case "template":
      return (await get<Template>(`/api/v2/templates/${seg(id)}`)).name;
    case "version":
      return (await get<TemplateVersion>(`/api/v2/templateversions/${seg(id)}`)).name;
  }
}

const nameQuery = (reference: Reference) =>
  queryOptions({
    queryKey: ["name", reference.kind, reference.id],
    queryFn: () => nameOf(reference),
    retry: false,
    staleTime: Infinity,
  });

/** Names by id: what the reader may not see, or what is deleted, keeps its id. */
export function useNames(diff: unknown): ReadonlyMap<string, string> {
  const references = referencesOf(diff);
  return useQueries({
    queries: references.map(nameQuery),
    combine: (answers) =>
      new Map(
        references.flatMap(({ id }, index) => {
          const name = answers[index]?.data;
          return name ? [[id, name] as const] : [];
        }),
      ),
  });
}
