// A task's state in words: the state of its workspace, and what its agent reports.
import type { Task } from "../../api/types";
import type { Tone } from "../../ui/Badge";

const STATUS: Readonly<Record<Task["status"], readonly [Tone, string]>> = {
  pending: ["busy", "Pending"],
  initializing: ["busy", "Starting"],
  active: ["good", "Ready"],
  paused: ["idle", "Paused"],
  error: ["bad", "Error"],
  unknown: ["idle", "Unknown"],
};
const STATE: Readonly<Record<string, readonly [Tone, string]>> = {
  working: ["busy", "Working"],
  idle: ["good", "Waiting for you"],
  complete: ["good", "Done"],
  failed: ["bad", "Failed"],
};

export function taskStatus(task: Pick<Task, "status" | "current_state">): {
  tone: Tone;
  text: string;
  pulse: boolean;
} {
  const reported =
    task.status === "active" && task.current_state ? STATE[task.current_state.state] : undefined;
  const [tone, text] = reported ?? STATUS[task.status];
  return { tone, text, pulse: tone === "busy" };
}

/** Whether the user can continue the conversation. */
export const isLive = (task: Pick<Task, "status">): boolean => task.status === "active";
export const canPause = (task: Pick<Task, "status">): boolean =>
  task.status === "active" || task.status === "initializing" || task.status === "error";
export const canResume = (task: Pick<Task, "status">): boolean => task.status === "paused";
export const taskName = (task: Pick<Task, "display_name" | "name">): string =>
  task.display_name || task.name;
export const taskAddress = (task: Pick<Task, "owner_name" | "id">): string =>
  `/tasks/${encodeURIComponent(task.owner_name)}/${task.id}`;
