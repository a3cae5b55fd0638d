// Where an application opens. null: it cannot be opened from here.
import type { AppPlace } from "../../../api/app-place";
import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../../../api/types";

// A template's author may give an external application any address; only these are links a person can want.
const LINK = /^(?!javascript:|data:|vbscript:)[a-z][a-z0-9+.-]*:/i;

export function addressOf(app: WorkspaceApp, workspace: Workspace, agent: WorkspaceAgent, place: AppPlace): string | null {
  if (app.external) return app.url && LINK.test(app.url) ? app.url : null;
  if (app.command) return `/@${workspace.owner_name}/${workspace.name}.${agent.name}/terminal?app=${encodeURIComponent(app.slug)}`;
  if (!app.url) return null;
  if (!app.subdomain) return `${place.path}/@${workspace.owner_name}/${workspace.name}.${agent.name}/apps/${encodeURIComponent(app.slug)}/`;
  return place.host && app.subdomain_name ? `${window.location.protocol}//${place.host.replace("*", app.subdomain_name)}/` : null;
}
