// The groups of the deployment are those of its default organization, or of the first that the user sees.
import { useQuery } from "@tanstack/react-query";
import { Navigate } from "react-router";

import { seg } from "../../api/client";
import { organizations } from "../../api/queries/session";
import { Failure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";

export function DeploymentGroups() {
  const list = useQuery(organizations);
  if (list.isLoadingError) return <Failure error={list.error} retry={() => void list.refetch()} />;
  const home = list.data?.find((organization) => organization.is_default) ?? list.data?.[0];
  if (!home) return <Loading />;
  return <Navigate to={`/organizations/${seg(home.name)}/groups`} replace />;
}
