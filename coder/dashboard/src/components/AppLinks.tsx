// The applications of one agent that open in a browser.
import { useQuery } from "@tanstack/react-query";

import { appHost } from "../api/queries";
import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../api/types";

export function AppLinks({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const host = useQuery(appHost);
  const apps = agent.apps.filter((app) => !app.hidden && !app.command);
  if (apps.length === 0 || host.isPending) return null;
  return (
    <nav className="actions" aria-label={`Applications of ${agent.name}`}>
      {apps.map((app) => {
        const address = addressOf(app, workspace, agent, host.data?.host ?? "");
        const name = app.display_name || app.slug;
        const sick = app.health === "unhealthy";
        return address === null ? (
          <span key={app.id} className="faint" title="It needs a host of its own, and this deployment has no wildcard access URL.">{name}</span>
        ) : (
          <a key={app.id} className="button" href={address} target="_blank" rel="noreferrer" title={sick ? "It does not answer its health check." : undefined}>
            {name}{sick ? " (unhealthy)" : ""}
          </a>
        );
      })}
    </nav>
  );
}

// A template's author may give an external application any address; only these are links a person can want.
const LINK = /^(?!javascript:|data:|vbscript:)[a-z][a-z0-9+.-]*:/i;

function addressOf(app: WorkspaceApp, workspace: Workspace, agent: WorkspaceAgent, host: string): string | null {
  if (app.external) return app.url && LINK.test(app.url) ? app.url : null;
  if (!app.url) return null;
  if (!app.subdomain) return `/@${workspace.owner_name}/${workspace.name}.${agent.name}/apps/${encodeURIComponent(app.slug)}/`;
  return host && app.subdomain_name ? `${window.location.protocol}//${host.replace("*", app.subdomain_name)}/` : null;
}
