// The frame of the deployment's pages. Its own address redirects to the first page that the user
// may see.
import { Navigate, Outlet } from "react-router";

import { usePermissions } from "../../api/permissions";
import { DEPLOYMENT } from "./nav";
import { useReachable } from "../../features/navigation/useReachable";
import { SidePage } from "../../features/navigation/SidePage";
import { Loading } from "../../ui/Loading";
import { PermissionDenied } from "../../ui/PermissionDenied";

export function DeploymentLayout() {
  return (
    <SidePage label="Deployment" groups={DEPLOYMENT}>
      <Outlet />
    </SidePage>
  );
}

export function ToFirstPage() {
  const reachable = useReachable();
  const may = usePermissions();
  if (!may.known) return <Loading />;
  const first = DEPLOYMENT.flatMap((group) => group.items).find(reachable);
  return first ? (
    <Navigate to={first.to} replace />
  ) : (
    <PermissionDenied subject="the deployment's settings" />
  );
}
