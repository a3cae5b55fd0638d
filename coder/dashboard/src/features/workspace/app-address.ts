// The address of an application. null: it cannot be opened from here.
import type { AppBase } from "../../api/app-base";
import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../../api/types";

// A template's author may give an external application any address; only the schemes below are
// accepted as links. The rule is that of coder/domain/apps/external_addresses.py, which checks
// addresses from agents and those the CLI opens.
const LINK =
  /^(?!(?:javascript|data|vbscript|file|blob|filesystem|about|view-source):)[a-z][a-z0-9+.-]+:/i;

/**
 * Placeholder in an external application's address for a session token of the user who opens it.
 */
export const TOKEN = "$SESSION_TOKEN";
/**
 * Desktop programs known to sign in at a server like this one with the token that they receive. An
 * allow list, not a list of dangerous programs: any other URL scheme on a machine could send the
 * token anywhere, and no list of those is complete. A program that is missing here receives no
 * token and asks its user to sign in.
 */
const PROGRAMS: ReadonlySet<string> = new Set([
  "vscode",
  "vscode-insiders",
  "vscodium",
  "vscodium-insiders",
  "code-oss",
  "cursor",
  "windsurf",
  "windsurf-next",
  "positron",
  "antigravity",
  "trae",
  "kiro",
  "void",
  "devin",
  "jetbrains",
  "jetbrains-gateway",
  "fleet",
  "zed",
  "coder",
]);

const MAX_DECODES = 5;

/**
 * Whether the program behind the address keeps a token for this server. These programs sign in at
 * the address in their parameter `url`, which may stand behind `?` or `#`; `server` is this
 * server's address as templates know it.
 */
function keepsToken(address: string, server: string): boolean {
  if (!PROGRAMS.has(address.slice(0, address.indexOf(":")).toLowerCase())) return false;
  const ownServer = [window.location.origin, server.replace(/\/+$/, "")].filter(Boolean);
  // Compared as text: programs parse odd addresses differently.
  const isOwnServer = (text: string) =>
    text
      .split(/[?#&]/)
      .flatMap((part) => [...new URLSearchParams(part)])
      .every(
        ([name, url]) =>
          name.toLowerCase() !== "url" || ownServer.some((own) => url === own || url === `${own}/`),
      );
  // Browsers strip these characters, which could turn another parameter into `url`.
  let text = address.replace(/[\t\n\r]/g, "");
  // A program may decode more than once before it reads `url`, so that one may hide in a value: every
  // reading is checked.
  for (let round = 0; round < MAX_DECODES; round++) {
    if (!isOwnServer(text)) return false;
    let next;
    try {
      next = decodeURIComponent(text);
    } catch {
      return false;
    }
    if (next === text) return true;
    text = next;
  }
  return false;
}

/**
 * `viewer` is the id of the user who would open it. An address carries a token only in the viewer's
 * own workspace, because the workspace's owner may control where it leads. A program without a
 * token asks its user to sign in.
 */
export function addressOf(
  app: WorkspaceApp,
  workspace: Workspace,
  agent: WorkspaceAgent,
  base: AppBase,
  viewer = "",
): string | null {
  if (app.external) {
    if (!app.url || !LINK.test(app.url)) return null;
    return viewer !== "" && viewer === workspace.owner_id && keepsToken(app.url, base.server ?? "")
      ? app.url
      : app.url.replaceAll(TOKEN, "");
  }
  if (app.command)
    return `/@${workspace.owner_name}/${workspace.name}.${agent.name}/terminal?app=${encodeURIComponent(app.slug)}`;
  if (!app.url) return null;
  if (!app.subdomain)
    return `${base.path}/@${workspace.owner_name}/${workspace.name}.${agent.name}/apps/${encodeURIComponent(app.slug)}/`;
  return base.host && app.subdomain_name
    ? `${window.location.protocol}//${base.host.replace("*", app.subdomain_name)}/`
    : null;
}
