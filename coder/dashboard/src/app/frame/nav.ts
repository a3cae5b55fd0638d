// Menu entries and who sees them. A link to a page that the user may not see is hidden.
import { pageValue } from "../../api/meta";
import type { NavItem } from "../../features/navigation/nav-item";

/** A deployment may hide its tasks (`--hide-ai-tasks`); the pages stay reachable by address. */
const tasksVisible = pageValue<boolean>("tasks-tab-visible") !== false;

/** The key that opens the page after "g". */
const ALL: readonly (NavItem & { key: string })[] = [
  { to: "/home", text: "Home", words: "continue recent overview", key: "h" },
  { to: "/workspaces", text: "Workspaces", key: "w" },
  { to: "/templates", text: "Templates", key: "t" },
  { to: "/tasks", text: "Tasks", words: "ai agent prompt", key: "a" },
];
/** Actions, and pages without an entry in the top bar: in the palette, and on the pages where they belong. */
export const ACTIONS: readonly NavItem[] = [
  {
    to: "/workspaces/attach",
    text: "Attach a machine",
    words: "external own server existing workspace agent",
    allowed: (may) => may.createOwnWorkspace || may.createWorkspaceForAny,
  },
  {
    to: "/workspaces/fleet",
    text: "Fleet",
    words: "attached external machines disk memory version rotate",
  },
  {
    to: "/workspaces/idle",
    text: "Idle workspaces",
    words: "unused cost savings autostop",
  },
];
/** Forms for new items, in the palette after the pages. */
export const FORMS: readonly NavItem[] = [
  { to: "/settings/tokens/new", text: "Add token", words: "create new api key" },
  {
    to: "/deployment/users/create",
    text: "Create user",
    words: "new invite person account",
    allowed: (may) => may.createUser,
  },
];
export const MAIN = ALL.filter((item) => item.to !== "/tasks" || tasksVisible);
