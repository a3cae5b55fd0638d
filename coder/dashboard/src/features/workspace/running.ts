// Running workspaces of the deployment's statistics, which count machines that were never attached.
import { useQuery } from "@tanstack/react-query";

import { usePermissions } from "../../api/permissions";
import { unattachedCount } from "../../api/queries/workspaces";

export interface Running {
  label: string;
  /** Undefined while it loads, and if it cannot be known. */
  count: number | undefined;
  /** Whether the viewer may count machines that were never attached. */
  apart: boolean;
  /** Their number; undefined while it loads, and if it cannot be known. */
  unattached: number | undefined;
  /** Whether they are still being counted: what shows the figures has to keep their places. */
  pending: boolean;
}

/**
 * Count machines that were never attached apart. A viewer who may not list all workspaces cannot:
 * then the label says what the figure includes.
 */
export function useRunning(counted: number | undefined): Running {
  const { viewAllWorkspaces, viewDeploymentStats } = usePermissions();
  const answer = useQuery({
    ...unattachedCount,
    enabled: viewDeploymentStats && viewAllWorkspaces,
  });
  if (!viewAllWorkspaces)
    return {
      label: "Running or not attached",
      count: counted,
      apart: false,
      unattached: undefined,
      pending: false,
    };
  const unattached = answer.data;
  const known = counted !== undefined && unattached !== undefined;
  return {
    label: "Running",
    count: known ? Math.max(0, counted - unattached) : undefined,
    apart: true,
    unattached,
    pending: answer.isPending,
  };
}
