// `/organizations` redirects to the first page of an organization that the user may see.
import { useQueries, useQuery } from "@tanstack/react-query";
import { Navigate, useParams } from "react-router";

import { organizationChecks, type OrganizationPermissions } from "../../api/permissions";
import { post } from "../../api/client";
import { organizations } from "../../api/queries/session";
import { Failure, LoadFailure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { MembersPage } from "./MembersPage";
import { organizationPages } from "./nav";
import { useOrganization } from "../../features/organization/useOrganization";

export function OrganizationsPage() {
  const all = useQuery(organizations);
  const ordered = [...(all.data ?? [])].sort((a, b) => Number(b.is_default) - Number(a.is_default));
  const checks = useQueries({
    queries: ordered.map((candidate) => ({
      queryKey: ["permissions", "organization", candidate.id],
      queryFn: () =>
        post<OrganizationPermissions>("/api/v2/authcheck", {
          checks: organizationChecks(candidate.id),
        }),
      staleTime: 60_000,
    })),
  });
  if (all.isLoadingError) return <Failure error={all.error} retry={() => void all.refetch()} />;
  if (all.isPending || checks.some((check) => check.isPending)) return <Loading />;
  const unchecked = checks.find((check) => check.isLoadingError);
  const pages = ordered.flatMap((candidate, index) =>
    organizationPages(`/organizations/${candidate.name}`, checks[index]?.data ?? {}).flatMap(
      (group) => group.items,
    ),
  );
  const first = pages[0];
  return first ? (
    <Navigate to={first.to} replace />
  ) : unchecked ? (
    <LoadFailure query={unchecked} title="Failed to load your permissions" />
  ) : (
    <PermissionDenied subject="the organizations' settings" />
  );
}

/**
 * An organization's own address shows its members; a user who may not see them is redirected to the
 * first page they may see.
 */
export function OrganizationStart() {
  const view = useOrganization();
  const { organization } = useParams();
  if (!view?.known) return <Loading />;
  if (view.may.viewMembers) return <MembersPage key={organization} />;
  const first = organizationPages(view.home, view.may).flatMap((group) => group.items)[0];
  return first ? (
    <Navigate to={first.to} replace />
  ) : (
    <PermissionDenied subject="this organization's settings" />
  );
}
