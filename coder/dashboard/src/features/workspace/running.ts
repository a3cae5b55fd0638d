// Running workspaces of the deployment's statistics, which count machines that were never attached.
import { useQuery } from "@tanstack/react-query";

import { usePermissions } from "../../api/permissions";
import { unattachedCount } from "../../api/queries/workspaces";

export interface Running {
  label: string;
  /** Undefined until known. */
  count: number | undefined;
  unattached: number;
}

/**
 * Count machines that were never attached apart. A viewer who may not list all workspaces cannot:
 * then the label says what the figure includes.
 */
export function useRunning(counted: number | undefined): Running {
  const { viewAllWorkspaces, viewDeploymentStats } = usePermissions();
  const unattached = useQuery({
    ...unattachedCount,
    enabled: viewDeploymentStats && viewAllWorkspaces,
  }).data;
  if (!viewAllWorkspaces)
    return { label: "Running or not attached", count: counted, unattached: 0 };
  const known = counted !== undefined && unattached !== undefined;
  return {
    label: "Running",
    count: known ? Math.max(0, counted - unattached) : undefined,
    unattached: unattached ?? 0,
  };
}
