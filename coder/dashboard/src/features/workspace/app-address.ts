// Where an application opens. null: it cannot be opened from here.
import type { AppPlace } from "../../api/app-place";
import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../../api/types";

// A template's author may give an external application any address; only these are links a person can want. The rule is
// coder/domain/apps/external_addresses.py's, which judges what agents make and what the command line opens.
const LINK =
  /^(?!(?:javascript|data|vbscript|file|blob|filesystem|about|view-source):)[a-z][a-z0-9+.-]+:/i;

/** Stands in an external application's address for a key of whoever opens it. */
export const TOKEN = "$SESSION_TOKEN";
/** Programs on a person's own machine that are known to sign in at a server like this one with the key they are handed. A list of
 * these, not of what is dangerous: whatever else a machine may have a scheme for could send the key anywhere, and nobody knows them all.
 * A program that is missing here gets no key and asks whoever uses it to sign in. */
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

const MOST_DECODED = 5;

/** Whether what opens the address keeps a key for this server. These programs sign in wherever the parameter `url` tells them, which
 * may stand behind `?` or `#`; `server` is this server's address as templates know it. */
function keepsKey(address: string, server: string): boolean {
  if (!PROGRAMS.has(address.slice(0, address.indexOf(":")).toLowerCase())) return false;
  const ours = [window.location.origin, server.replace(/\/+$/, "")].filter(Boolean);
  // Compared as text: no two programs read an odd address alike.
  const isOurs = (text: string) =>
    text
      .split(/[?#&]/)
      .flatMap((part) => [...new URLSearchParams(part)])
      .every(
        ([name, url]) =>
          name.toLowerCase() !== "url" || ours.some((own) => url === own || url === `${own}/`),
      );
  // Browsers leave these characters out, and would make `url` of what was none.
  let text = address.replace(/[\t\n\r]/g, "");
  // A program may decode more than once before it looks for `url`, so that one may be hidden in a value: all readings count.
  for (let round = 0; round < MOST_DECODED; round++) {
    if (!isOurs(text)) return false;
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

/** `viewer` is the id of who would open it: only in one's own workspace does an address carry one's key, because its owner may
 * have had a say in where it leads. A program that gets none asks whoever uses it to sign in. */
export function addressOf(
  app: WorkspaceApp,
  workspace: Workspace,
  agent: WorkspaceAgent,
  place: AppPlace,
  viewer = "",
): string | null {
  if (app.external) {
    if (!app.url || !LINK.test(app.url)) return null;
    return viewer !== "" && viewer === workspace.owner_id && keepsKey(app.url, place.server ?? "")
      ? app.url
      : app.url.replaceAll(TOKEN, "");
  }
  if (app.command)
    return `/@${workspace.owner_name}/${workspace.name}.${agent.name}/terminal?app=${encodeURIComponent(app.slug)}`;
  if (!app.url) return null;
  if (!app.subdomain)
    return `${place.path}/@${workspace.owner_name}/${workspace.name}.${agent.name}/apps/${encodeURIComponent(app.slug)}/`;
  return place.host && app.subdomain_name
    ? `${window.location.protocol}//${place.host.replace("*", app.subdomain_name)}/`
    : null;
}
