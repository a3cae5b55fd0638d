// What the menus offer and to whom. A link that leads to a refusal is not shown.
import type { Permissions } from "../api/permissions";

export interface NavItem {
  to: string;
  text: string;
  allowed?: (may: Permissions) => boolean;
  /** Words the command palette also finds it by. */
  words?: string;
}

export const MAIN: readonly NavItem[] = [
  { to: "/workspaces", text: "Workspaces" },
  { to: "/templates", text: "Templates" },
  { to: "/tasks", text: "Tasks", words: "ai agent prompt" },
];
