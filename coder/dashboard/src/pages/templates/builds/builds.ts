// How the versions of a template do: from the latest build of each of its workspaces.
import { agentsOf } from "../../../features/workspace/status";
import type { Workspace } from "../../../api/types";

export interface VersionReport {
  version: string;
  name: string;
  /** Latest builds with this version that have ended. */
  ended: number;
  failed: number;
  /** Milliseconds that successful starts took, from the provisioner's begin to its end. */
  p50: number | null;
  p95: number | null;
  /** Workspaces with an agent that has never connected although its time is over. */
  unconnected: number;
  active: boolean;
}

/** The nearest-rank percentile of numbers; null for none. */
export function percentile(numbers: readonly number[], share: number): number | null {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

export function reportVersions(workspaces: readonly Workspace[], active: string): VersionReport[] {
  const byVersion = new Map<string, Workspace[]>();
  for (const workspace of workspaces) {
    const id = workspace.latest_build.template_version_id;
    byVersion.set(id, [...(byVersion.get(id) ?? []), workspace]);
  }
  const newest = (group: readonly Workspace[]) =>
    Math.max(...group.map(({ latest_build: build }) => Date.parse(build.created_at)));
  return [...byVersion]
    .map(([version, group]) => {
      const jobs = group.map(({ latest_build: build }) => build.job);
      const times = group.flatMap(({ latest_build: build }) =>
        build.transition === "start" &&
        build.job.status === "succeeded" &&
        build.job.started_at &&
        build.job.completed_at
          ? [Date.parse(build.job.completed_at) - Date.parse(build.job.started_at)]
          : [],
      );
      const failed = jobs.filter((job) => job.status === "failed").length;
      return {
        version,
        name: group[0]?.latest_build.template_version_name ?? version,
        ended: failed + jobs.filter((job) => job.status === "succeeded").length,
        failed,
        p50: percentile(times, 0.5),
        p95: percentile(times, 0.95),
        unconnected: group.filter(
          (workspace) =>
            workspace.latest_build.status === "running" &&
            agentsOf(workspace).some((agent) => agent.status === "timeout"),
        ).length,
        active: version === active,
        newest: newest(group),
      };
    })
    .sort((a, b) => Number(b.active) - Number(a.active) || b.newest - a.newest)
    .map(({ newest: _, ...report }) => report);
}

export interface CommonError {
  text: string;
  workspaces: Workspace[];
}

/** The errors of failed builds, the commonest first. */
export function commonErrors(workspaces: readonly Workspace[]): CommonError[] {
  const found = new Map<string, Workspace[]>();
  for (const workspace of workspaces) {
    const { job } = workspace.latest_build;
    if (job.status !== "failed") continue;
    const text = (job.error ?? "").trim().split("\n")[0] || "No reason given";
    found.set(text, [...(found.get(text) ?? []), workspace]);
  }
  return [...found]
    .map(([text, group]) => ({ text, workspaces: group }))
    .sort((a, b) => b.workspaces.length - a.workspaces.length);
}
