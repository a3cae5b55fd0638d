// The test run of a version: build one workspace, probe its agents and applications, delete it. The
// workspace is deleted after a failure, too, and when the run is stopped.
import { ApiError, get, patch, post, reasonOf } from "../../../api/client";
import type { Workspace, WorkspaceAgent, WorkspaceBuildParameter } from "../../../api/types";

export type Step = "build" | "probe" | "delete";
export const STEPS: readonly Step[] = ["build", "probe", "delete"];

export interface Progress {
  step: Step;
  state: "running" | "done" | "failed" | "skipped";
  text: string;
}

export interface TestRun {
  version: string;
  name: string;
  values: readonly WorkspaceBuildParameter[];
  onProgress: (progress: Progress) => void;
  onWorkspace: (workspace: Workspace) => void;
  signal: AbortSignal;
  /** Resolves before the next request for the state. */
  pause: () => Promise<void>;
}

/** A page that closes cannot delete its workspace: then its schedule stops it. */
const TTL_MS = 3_600_000;
/** Requests for the state of agents before the probe gives up, one a second. */
const MOST_PROBES = 600;

const isActive = ({ latest_build: { job } }: Workspace) =>
  ["pending", "running", "canceling"].includes(job.status);

const read = (id: string) => get<Workspace>(`/api/v2/workspaces/${id}?include_deleted=true`);

async function settled(id: string, pause: TestRun["pause"], signal?: AbortSignal) {
  for (;;) {
    const workspace = await read(id);
    if (!isActive(workspace) || signal?.aborted) return workspace;
    await pause();
  }
}

const topAgents = (workspace: Workspace): WorkspaceAgent[] =>
  workspace.latest_build.resources
    .flatMap(({ agents }) => agents ?? [])
    .filter(({ parent_id }) => parent_id === null);

const STARTING = new Set<WorkspaceAgent["lifecycle_state"]>(["created", "starting"]);

/** What is wrong with an agent: null for nothing, undefined while it may still become ready. */
export function problemOf(agent: WorkspaceAgent): string | null | undefined {
  if (agent.status === "timeout") return `${agent.name} did not connect within its time`;
  if (agent.status === "disconnected") return `${agent.name} disconnected`;
  if (agent.lifecycle_state === "start_error") return `${agent.name}: a startup script failed`;
  if (agent.lifecycle_state === "start_timeout")
    return `${agent.name}: a startup script exceeded its time`;
  if (agent.status === "connecting" || STARTING.has(agent.lifecycle_state)) return undefined;
  const sick = agent.apps.filter(({ health }) => health === "unhealthy");
  if (sick.length > 0)
    return `${agent.name}: ${sick.map(({ slug }) => slug).join(", ")} is not healthy`;
  return agent.apps.some(({ health }) => health === "initializing") ? undefined : null;
}

/** Throws an error with the problems of the agents, once each has a verdict. */
async function probe(workspace: Workspace, run: TestRun): Promise<string> {
  if (workspace.latest_build.has_external_agent)
    return "Not probed: a machine has to be attached first.";
  for (let attempt = 0; attempt < MOST_PROBES; attempt++) {
    const agents = topAgents(attempt === 0 ? workspace : await read(workspace.id));
    if (agents.length === 0) return "The workspace has no agent.";
    const verdicts = agents.map(problemOf);
    const problems = verdicts.filter((verdict) => typeof verdict === "string");
    if (!verdicts.includes(undefined)) {
      if (problems.length > 0) throw new Error(`${problems.join("; ")}.`);
      return `Connected and ready: ${agents.map(({ name }) => name).join(", ")}.`;
    }
    if (run.signal.aborted) throw new Error("Stopped.");
    await run.pause();
  }
  throw new Error("The agents were not ready within ten minutes.");
}

async function deleteWorkspace(id: string, pause: TestRun["pause"]): Promise<void> {
  const before = await read(id);
  if (isActive(before)) {
    // A build that has ended meanwhile cannot be canceled, and need not be.
    await patch(`/api/v2/workspacebuilds/${before.latest_build.id}/cancel`).catch(() => undefined);
    await settled(id, pause);
  }
  await post(`/api/v2/workspaces/${id}/builds`, { transition: "delete", reason: "dashboard" });
  const after = await settled(id, pause).catch((error: unknown) => {
    if (error instanceof ApiError && [404, 410].includes(error.status)) return null;
    throw error;
  });
  if (after && after.latest_build.job.status !== "succeeded")
    throw new Error(after.latest_build.job.error || "The deletion was canceled.");
}

/** Run all steps. Return whether all succeeded; failures are in the progress. */
export async function runTest(run: TestRun): Promise<boolean> {
  let ok = true;
  const step = async (name: Step, text: string, act: () => Promise<string>) => {
    run.onProgress({ step: name, state: "running", text });
    try {
      run.onProgress({ step: name, state: "done", text: await act() });
    } catch (error) {
      ok = false;
      run.onProgress({ step: name, state: "failed", text: reasonOf(error) });
    }
  };
  const skip = (name: Step) => run.onProgress({ step: name, state: "skipped", text: "" });
  let workspace: Workspace | null = null;
  await step("build", "The workspace is being built…", async () => {
    const created = await post<Workspace>("/api/v2/users/me/workspaces", {
      name: run.name,
      template_version_id: run.version,
      ttl_ms: TTL_MS,
      rich_parameter_values: run.values,
    });
    workspace = created;
    run.onWorkspace(created);
    workspace = await settled(created.id, run.pause, run.signal);
    if (run.signal.aborted) throw new Error("Stopped.");
    const { job } = workspace.latest_build;
    if (job.status !== "succeeded") throw new Error(job.error || "The build was canceled.");
    return "The build succeeded.";
  });
  const built = workspace as Workspace | null;
  if (built === null) {
    skip("probe");
    skip("delete");
    return false;
  }
  if (ok)
    await step("probe", "Waiting until the agents are connected and ready…", () =>
      probe(built, run),
    );
  else skip("probe");
  await step("delete", "The workspace is being deleted…", async () => {
    await deleteWorkspace(built.id, run.pause);
    return "The workspace is deleted.";
  });
  return ok;
}
