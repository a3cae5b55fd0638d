// Starting, stopping and the like: each is a build.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";

import { ApiError, get, patch, post } from "../../../api/client";
import type { CreateWorkspaceBuildRequest, Workspace, WorkspaceBuild } from "../../../api/types";
import { valuesPath } from "../paths";

export type BuildOptions = Partial<Omit<CreateWorkspaceBuildRequest, "transition">>;
type Transition = WorkspaceBuild["transition"];

export const startBuild = (workspace: string, transition: Transition, options: BuildOptions = {}) =>
  post<WorkspaceBuild>(`/api/v2/workspaces/${workspace}/builds`, {
    transition,
    reason: "dashboard",
    ...options,
  });

/** The newest version of the template, with the values the workspace has. */
export const updateToActive = (workspace: Workspace, options: BuildOptions = {}) =>
  startBuild(workspace.id, "start", {
    template_version_id: workspace.template_active_version_id,
    ...options,
  });

/** The version a start is made with: the server refuses every other where the template wants the active one. */
export const startVersion = (workspace: Workspace): string =>
  workspace.template_require_active_version
    ? workspace.template_active_version_id
    : workspace.latest_build.template_version_id;

/** Starts it, with the values it has. */
export const startWorkspace = (workspace: Workspace, options: BuildOptions = {}) =>
  startVersion(workspace) === workspace.latest_build.template_version_id
    ? startBuild(workspace.id, "start", options)
    : updateToActive(workspace, options);

/** Whether a build was refused because of values: they are missing, or no longer allowed. */
export const lacksValues = (refused: unknown): boolean =>
  refused instanceof ApiError && refused.status === 400 && refused.validations.length > 0;

/** Begins a build; where the version wants values the workspace has not, leads to where they are given. */
export function useAskingForValues() {
  const navigate = useNavigate();
  return async (
    workspace: Workspace,
    version: string,
    begin: () => Promise<unknown>,
  ): Promise<void> => {
    try {
      await begin();
    } catch (refused) {
      if (!lacksValues(refused)) throw refused;
      await navigate(valuesPath(workspace, version));
    }
  };
}

export const cancelBuild = (build: string) => patch(`/api/v2/workspacebuilds/${build}/cancel`);

const POLL_MS = 700;

/** The server refuses a build while another is active, so a restart waits for its stop to end. */
export async function stopThenStart(
  workspace: Workspace,
  options: BuildOptions = {},
): Promise<void> {
  await startBuild(workspace.id, "stop");
  for (;;) {
    const { latest_build: build } = await get<Workspace>(`/api/v2/workspaces/${workspace.id}`);
    if (build.job.status === "failed" || build.job.status === "canceled")
      throw new Error(`The stop ${build.job.status}.`);
    if (build.job.status === "succeeded") break;
    await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
  }
  await startWorkspace(workspace, options);
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
