// Where an application opens. null: it cannot be opened from here.
import type { AppPlace } from "../../../api/app-place";
import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../../../api/types";

// A template's author may give an external application any address; only these are links a person can want. The rule is
// coder/domain/apps/external_addresses.py's, which judges what agents make and what the command line opens.
const LINK = /^(?!(?:javascript|data|vbscript|file|blob|filesystem|about|view-source):)[a-z][a-z0-9+.-]+:/i;

/** Stands in an external application's address for a key of whoever opens it. */
export const TOKEN = "$SESSION_TOKEN";
/** Schemes that lead to another host, or to a program that sends what it opens there. Any other is some program's own, which signs in
 * with the key it is handed: a template's author may name one nobody has heard of. */
const CARRIES_AWAY = /^(?:https?|wss?|s?ftp|ftps|ssh|telnet|rdp|vnc|smb|nfs|git|svn|mailto|sms|smsto|mms|tel|sip|sips|xmpp|irc|ircs|ldap|ldaps|magnet|intent|search-ms|ms-[a-z-]+|web\+[a-z]+|git\+[a-z]+|svn\+ssh):/i;

/** `viewer` is the id of who would open it: only in one's own workspace does an address carry one's key, because its owner may
 * have had a say in where it leads. A program that gets none asks whoever uses it to sign in. */
export function addressOf(app: WorkspaceApp, workspace: Workspace, agent: WorkspaceAgent, place: AppPlace, viewer = ""): string | null {
  if (app.external) {
    if (!app.url || !LINK.test(app.url)) return null;
    return viewer !== "" && viewer === workspace.owner_id && !CARRIES_AWAY.test(app.url) ? app.url : app.url.replaceAll(TOKEN, "");
  }
  if (app.command) return `/@${workspace.owner_name}/${workspace.name}.${agent.name}/terminal?app=${encodeURIComponent(app.slug)}`;
  if (!app.url) return null;
  if (!app.subdomain) return `${place.path}/@${workspace.owner_name}/${workspace.name}.${agent.name}/apps/${encodeURIComponent(app.slug)}/`;
  return place.host && app.subdomain_name ? `${window.location.protocol}//${place.host.replace("*", app.subdomain_name)}/` : null;
}
