// Workspaces that run unused, and what a stop after a time without use would have saved.
import type { Workspace } from "../../../api/types";

export const HOUR_MS = 3_600_000;
/** How far back savings are counted. */
export const PERIOD_MS = 30 * 24 * HOUR_MS;

export interface Idle {
  workspace: Workspace;
  /** Since when it runs without use: its last use, or the start of its build if that is later. */
  since: number;
}

/** Running workspaces, the longest unused first. Attached machines are left out: the server cannot stop them. */
export function idleOf(workspaces: readonly Workspace[]): Idle[] {
  return workspaces
    .filter(
      ({ latest_build: build }) => build.status === "running" && build.has_external_agent !== true,
    )
    .map((workspace) => {
      const used = Date.parse(workspace.last_used_at);
      const started = Date.parse(
        workspace.latest_build.job.completed_at ?? workspace.latest_build.created_at,
      );
      return { workspace, since: Math.max(used > 0 ? used : 0, started) };
    })
    .sort((a, b) => a.since - b.since);
}

/** Hours within the period that a stop after `limit` hours without use would have saved so far. */
export function savedHours({ since }: Idle, limit: number, now: number): number {
  const stop = since + limit * HOUR_MS;
  return Math.max(0, now - Math.max(stop, now - PERIOD_MS)) / HOUR_MS;
}

export interface Total {
  /** The owner's or the template's id: templates of two organizations may have one name. */
  id: string;
  name: string;
  /** What the other pages call it. */
  label: string;
  /** The template's organization; empty for owners. */
  organization: string;
  /** Where its workspaces are listed. */
  filter: string;
  running: number;
  /** Workspaces that the rule would have stopped. */
  stopped: number;
  hours: number;
  /** Credits, by the daily cost of the templates. */
  cost: number;
}

type Row = Pick<Total, "id" | "name" | "label" | "organization" | "filter">;

const ownerRow = ({ owner_id: id, owner_name: name }: Workspace): Row => ({
  id,
  name,
  label: name,
  organization: "",
  filter: `owner:${name} status:running`,
});

const templateRow = (workspace: Workspace): Row => ({
  id: workspace.template_id,
  name: workspace.template_name,
  label: workspace.template_display_name || workspace.template_name,
  organization: workspace.organization_name,
  filter: `template:${workspace.template_name} organization:${workspace.organization_name} status:running`,
});

/** Totals by owner or by template, the largest saving first. */
export function totals(
  idle: readonly Idle[],
  by: "owner" | "template",
  limit: number,
  now: number,
): Total[] {
  const found = new Map<string, Total>();
  for (const item of idle) {
    const { workspace } = item;
    const row = by === "owner" ? ownerRow(workspace) : templateRow(workspace);
    const total = found.get(row.id) ?? { ...row, running: 0, stopped: 0, hours: 0, cost: 0 };
    const hours = savedHours(item, limit, now);
    found.set(row.id, {
      ...total,
      running: total.running + 1,
      stopped: total.stopped + (hours > 0 ? 1 : 0),
      hours: total.hours + hours,
      cost: total.cost + (hours / 24) * workspace.latest_build.daily_cost,
    });
  }
  return [...found.values()].sort((a, b) => b.hours - a.hours || a.label.localeCompare(b.label));
}
