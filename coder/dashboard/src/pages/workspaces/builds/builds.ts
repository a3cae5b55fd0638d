// Starting, stopping and other actions: each is a build.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";

import { ApiError, get, patch, post } from "../../../api/client";
import type {
  CreateWorkspaceBuildRequest,
  TemplateVersionParameter,
  Workspace,
  WorkspaceBuild,
  WorkspaceBuildParameter,
} from "../../../api/types";
import { stateOf } from "../../../features/provisioner/job-states";
import { valuesPath } from "../paths";

export type BuildOptions = Partial<Omit<CreateWorkspaceBuildRequest, "transition">>;
type Transition = WorkspaceBuild["transition"];

export const startBuild = (workspace: string, transition: Transition, options: BuildOptions = {}) =>
  post<WorkspaceBuild>(`/api/v2/workspaces/${workspace}/builds`, {
    transition,
    reason: "dashboard",
    ...options,
  });

/** The active version of the template, with the workspace's current values. */
export const updateToActive = (workspace: Workspace, options: BuildOptions = {}) =>
  startBuild(workspace.id, "start", {
    template_version_id: workspace.template_active_version_id,
    ...options,
  });

/**
 * The version for a start: the server rejects any other version if the template requires the active
 * one.
 */
export const startVersion = (workspace: Workspace): string =>
  workspace.template_require_active_version
    ? workspace.template_active_version_id
    : workspace.latest_build.template_version_id;

/** Start the workspace with its current values. */
export const startWorkspace = (workspace: Workspace, options: BuildOptions = {}) =>
  startVersion(workspace) === workspace.latest_build.template_version_id
    ? startBuild(workspace.id, "start", options)
    : updateToActive(workspace, options);

type Values = readonly WorkspaceBuildParameter[];

/**
 * Whether an update has to ask for values first: for new immutable parameters, new required ones, and
 * options that the version no longer has.
 */
export const needsValues = (
  version: readonly TemplateVersionParameter[],
  values: Values,
): boolean =>
  version.some((parameter) => {
    const own = values.find((value) => value.name === parameter.name);
    if (!own) return !parameter.ephemeral && (!parameter.mutable || parameter.required);
    return (
      parameter.options.length > 0 &&
      parameter.type === "string" &&
      !parameter.options.some((option) => option.value === own.value)
    );
  });

/**
 * Whether a build was rejected because of parameter values: missing ones, or ones no longer
 * allowed.
 */
export const isMissingValues = (refused: unknown): boolean =>
  refused instanceof ApiError && refused.status === 400 && refused.validations.length > 0;

/**
 * Start a build; if the version requires values that the workspace lacks, open the parameters page.
 */
export function useOpenForValues() {
  const navigate = useNavigate();
  return async (
    workspace: Workspace,
    version: string,
    begin: () => Promise<unknown>,
  ): Promise<void> => {
    try {
      await begin();
    } catch (refused) {
      if (!isMissingValues(refused)) throw refused;
      await navigate(valuesPath(workspace, version));
    }
  };
}

export const cancelBuild = (build: string) => patch(`/api/v2/workspacebuilds/${build}/cancel`);

const POLL_MS = 700;

/** The server rejects a build while another is active, so a restart waits for the stop to end. */
export async function stopThenStart(
  workspace: Workspace,
  options: BuildOptions = {},
): Promise<void> {
  await startBuild(workspace.id, "stop");
  for (;;) {
    const { latest_build: build } = await get<Workspace>(`/api/v2/workspaces/${workspace.id}`);
    if (build.job.status === "failed" || build.job.status === "canceled")
      throw new Error(`The stop build ended as ${stateOf(build.job)}.`);
    if (build.job.status === "succeeded") break;
    await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
  }
  await startWorkspace(workspace, options);
}

/** Any of these actions as a mutation that refreshes the page. */
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
