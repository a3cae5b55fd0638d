// What the menus offer and to whom. A link that leads to a refusal is not shown.
import { pageValue } from "../../api/meta";
import type { NavItem } from "../../features/navigation/nav-item";

/** A deployment may leave its tasks out (`--hide-ai-tasks`); their pages stay for whoever has an address. */
const tasksOffered = pageValue<boolean>("tasks-tab-visible") !== false;

/** `key` goes there after a "g". */
const ALL: readonly (NavItem & { key: string })[] = [
  { to: "/workspaces", text: "Workspaces", key: "w" },
  { to: "/templates", text: "Templates", key: "t" },
  { to: "/tasks", text: "Tasks", words: "ai agent prompt", key: "a" },
];
/** What is begun rather than looked at: in the palette, and where it belongs on pages. */
export const BEGIN: readonly NavItem[] = [
  {
    to: "/workspaces/attach",
    text: "Attach a machine",
    words: "external own server existing workspace agent",
    allowed: (may) => may.createOwnWorkspace || may.createWorkspaceForAny,
  },
];
export const MAIN = ALL.filter((item) => item.to !== "/tasks" || tasksOffered);
