// What the home page selects: recent workspaces, failures, and what waits for the user.
import { agentsOf, statusOf } from "../../../features/workspace/status";
import type { APIKeyWithOwner, Workspace, WorkspaceAgentMetadata } from "../../../api/types";

const CARDS = 3;
const DAY_MS = 86_400_000;
const TOKEN_WARNING_MS = 7 * DAY_MS;

/** The workspaces used last; a workspace that was never used counts from its last build. */
export function recentWorkspaces(mine: readonly Workspace[]): Workspace[] {
  const moment = (workspace: Workspace) => {
    const used = Date.parse(workspace.last_used_at);
    return Math.max(used > 0 ? used : 0, Date.parse(workspace.latest_build.created_at));
  };
  return mine
    .filter((workspace) => !workspace.dormant_at)
    .sort((a, b) => moment(b) - moment(a))
    .slice(0, CARDS);
}

/** The start of yesterday, in the viewer's time zone. */
export function yesterday(now: number): number {
  const day = new Date(now);
  day.setHours(0, 0, 0, 0);
  day.setDate(day.getDate() - 1);
  return day.getTime();
}

export interface Problem {
  workspace: Workspace;
  text: string;
  at: string;
  /** The failed build, whose log may say more. */
  build?: string;
}

/** Failed builds and failed startup scripts since a moment, newest first. */
export function problemsSince(mine: readonly Workspace[], since: number): Problem[] {
  const problems = mine.flatMap<Problem>((workspace) => {
    const { latest_build: build } = workspace;
    if (statusOf(workspace) === "failed")
      return [
        {
          workspace,
          text: build.job.error || "The build failed.",
          at: build.created_at,
          build: build.id,
        },
      ];
    if (build.status !== "running") return [];
    return agentsOf(workspace).flatMap((agent) =>
      agent.lifecycle_state === "start_error" || agent.lifecycle_state === "start_timeout"
        ? [
            {
              workspace,
              text:
                agent.lifecycle_state === "start_error"
                  ? `A startup script of ${agent.name} failed.`
                  : `The startup scripts of ${agent.name} take too long.`,
              at: agent.started_at ?? build.created_at,
            },
          ]
        : [],
    );
  });
  return problems
    .filter((problem) => Date.parse(problem.at) >= since)
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** Tokens that expire within a week. Tokens that have expired already work no more: they are left out. */
export function expiringTokens(tokens: readonly APIKeyWithOwner[], now: number): APIKeyWithOwner[] {
  return tokens
    .filter((token) => {
      const left = Date.parse(token.expires_at) - now;
      return left > 0 && left <= TOKEN_WARNING_MS;
    })
    .sort((a, b) => Date.parse(a.expires_at) - Date.parse(b.expires_at));
}

/** The branch that an agent reports, if its template has metadata with that name. */
export function branchOf(items: readonly WorkspaceAgentMetadata[]): string | null {
  const item = items.find(({ description }) =>
    /\bbranch\b/i.test(`${description.key.replaceAll("_", " ")} ${description.display_name}`),
  );
  if (!item || item.result.error) return null;
  return item.result.value.trim() || null;
}
