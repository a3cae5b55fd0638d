// Starting, stopping and the like: each is a build.
import { useMutation, useQueryClient } from "@tanstack/react-query";

import { get, patch, post } from "../../../api/client";
import type { CreateWorkspaceBuildRequest, Workspace, WorkspaceBuild } from "../../../api/types";

export type BuildOptions = Partial<Omit<CreateWorkspaceBuildRequest, "transition">>;
type Transition = WorkspaceBuild["transition"];

export const startBuild = (workspace: string, transition: Transition, options: BuildOptions = {}) =>
  post<WorkspaceBuild>(`/api/v2/workspaces/${workspace}/builds`, { transition, reason: "dashboard", ...options });

/** The newest version of the template, with the values the workspace has. */
export const updateToActive = (workspace: Workspace, options: BuildOptions = {}) =>
  startBuild(workspace.id, "start", { template_version_id: workspace.template_active_version_id, ...options });

export const cancelBuild = (build: string) => patch(`/api/v2/workspacebuilds/${build}/cancel`);

const POLL_MS = 700;

/** The server refuses a build while another is active, so a restart waits for its stop to end. */
export async function stopThenStart(workspace: Workspace, options: BuildOptions = {}): Promise<void> {
  await startBuild(workspace.id, "stop");
  for (;;) {
    const { latest_build: build } = await get<Workspace>(`/api/v2/workspaces/${workspace.id}`);
    if (build.job.status === "failed" || build.job.status === "canceled") throw new Error(`The stop ${build.job.status}.`);
    if (build.job.status === "succeeded") break;
    await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
  }
  await startBuild(workspace.id, "start", options);
}

/** Any of these as a mutation that refreshes what is shown. */
export function useBuildAction() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (act: () => Promise<unknown>) => act(),
    onSettled: async () => {
      await queries.invalidateQueries({ queryKey: ["workspace"] });
      await queries.invalidateQueries({ queryKey: ["workspaces"] });
    },
  });
}
