// The organization of the address, and the user's permissions in it.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";

import { organizationChecks, useChecks, type OrganizationPermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import type { Organization } from "../../api/types";

export interface OrganizationView {
  organization: Organization;
  name: string;
  /** The base path of its pages. */
  home: string;
  may: OrganizationPermissions;
  known: boolean;
}

/**
 * `name` absent: the default organization. null while it loads, undefined if no organization has
 * that name.
 */
export function useOrganizationOf(name: string | undefined): OrganizationView | null | undefined {
  const all = useQuery(organizations);
  const match = all.data?.find((candidate) =>
    name === undefined || name === "default"
      ? candidate.is_default
      : candidate.name === name || candidate.id === name,
  );
  const may = useChecks(
    ["organization", match?.id ?? ""],
    match ? organizationChecks(match.id) : null,
  );
  if (all.data === undefined) return null;
  if (match === undefined) return undefined;
  return {
    organization: match,
    name: match.display_name || match.name,
    home: `/organizations/${match.name}`,
    may,
    known: may.update !== undefined,
  };
}

export function useOrganization(): OrganizationView | null | undefined {
  return useOrganizationOf(useParams()["organization"]);
}
