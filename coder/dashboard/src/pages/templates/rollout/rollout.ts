// Words and limits of a rollout.
import type { TemplateRollout } from "../../../api/types";
import type { Tone } from "../../../ui/Badge";

export const STATUS_WORDS: Record<TemplateRollout["status"], string> = {
  running: "Running",
  stopped: "Stopped",
  completed: "Completed",
  rolled_back: "Rolled back",
  canceled: "Canceled",
};
export const STATUS_TONES: Record<TemplateRollout["status"], Tone> = {
  running: "busy",
  stopped: "warn",
  completed: "good",
  rolled_back: "idle",
  canceled: "idle",
};

export const isOpen = (rollout: TemplateRollout): boolean =>
  rollout.status === "running" || rollout.status === "stopped";

/** The percentage of the stage after the current one. */
export const nextStage = (rollout: TemplateRollout): number =>
  rollout.stages.find((stage) => stage > rollout.percent) ?? 100;

/** Whether the rollout began with a group that was deleted: only a group allows a stage of 0 percent. */
export const lostGroup = (rollout: TemplateRollout): boolean =>
  !rollout.group_id && rollout.stages[0] === 0;

/** "testers", "5% of the workspaces", "testers and 5% of the other workspaces". */
export function reachOf(rollout: TemplateRollout, percent = rollout.percent): string {
  if (percent === 100) return "all workspaces";
  if (lostGroup(rollout) && percent === 0) return "no workspaces";
  if (!rollout.group_id) return `${percent}% of the workspaces`;
  return percent === 0
    ? rollout.group_name
    : `${rollout.group_name} and ${percent}% of the other workspaces`;
}

/** "5, 25, 100" as numbers; null for anything else. The server checks their order. */
export function readStages(text: string): number[] | null {
  const parts = text.split(",").map((part) => part.trim().replace(/%$/, ""));
  return parts.every((part) => /^\d{1,3}$/.test(part)) ? parts.map(Number) : null;
}
