// The applications of one agent that open in a browser, each with its health.
import { ChevronDown } from "lucide-react";
import type { MouseEvent, ReactNode } from "react";

import { useAppBase } from "../../../api/app-base";
import type { Workspace, WorkspaceAgent, WorkspaceApp } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { Avatar } from "../../../ui/Avatar";
import { StatusText } from "../../../ui/Badge";
import { Button, buttonClass } from "../../../ui/Button";
import { Menu, MenuItem } from "../../../ui/Menu";
import { plural } from "../../../lib/words";
import { addressOf } from "../../../features/workspace/app-address";
import { appEntry, isPlainLink, openApp } from "./app-open";
import { Hint } from "../../../ui/Hint";

export function AppLinks({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const base = useAppBase();
  const me = useMe().id;
  const apps = agent.apps.filter((app) => !app.hidden);
  if (apps.length === 0 || base === null) return null;
  const groups = new Map<string, WorkspaceApp[]>();
  for (const app of apps)
    groups.set(app.group ?? "", [...(groups.get(app.group ?? "") ?? []), app]);
  const link = (app: WorkspaceApp) => (
    <AppLink key={app.id} app={app} address={addressOf(app, workspace, agent, base, me)} />
  );
  const unhealthyApps = apps.filter((app) => app.health === "unhealthy");
  return (
    <>
      <nav className="contents" aria-label={`Applications of ${agent.name}`}>
        {[...groups].map(([group, members]) =>
          group === "" ? (
            members.map(link)
          ) : (
            <Menu
              key={group}
              align="start"
              trigger={
                <Button>
                  {group}
                  <ChevronDown />
                </Button>
              }
            >
              {members.map((app) => {
                const address = addressOf(app, workspace, agent, base, me);
                return (
                  <MenuItem
                    key={app.id}
                    icon={<Avatar name={nameOf(app)} src={app.icon} size="xs" square />}
                    disabled={address === null}
                    hint={address === null ? NEEDS_SUBDOMAIN : stateOf(app)}
                    {...appEntry(app, address)}
                  >
                    {nameOf(app)}
                  </MenuItem>
                );
              })}
            </Menu>
          ),
        )}
      </nav>
      {unhealthyApps.length > 0 ? (
        <p className="basis-full text-sm text-muted">
          <strong className="font-medium text-text">{unhealthyApps.map(nameOf).join(", ")}</strong>{" "}
          {plural(unhealthyApps.length, "does", "do")} not respond to{" "}
          {plural(unhealthyApps.length, "its health check", "their health checks")}. You can still
          open {plural(unhealthyApps.length, "it", "them")}.
        </p>
      ) : null}
    </>
  );
}

const NEEDS_SUBDOMAIN =
  "This application needs a subdomain, but this deployment has no wildcard access URL.";
const nameOf = (app: WorkspaceApp) => app.display_name || app.slug;

function stateOf(app: WorkspaceApp): string {
  if (app.health === "unhealthy")
    return "The health check fails. You can still open the application.";
  if (app.health === "initializing") return "The application is starting.";
  return app.tooltip ?? "";
}

function AppLink({ app, address }: { app: WorkspaceApp; address: string | null }) {
  const name = nameOf(app);
  const body: ReactNode = (
    <>
      <Avatar name={name} src={app.icon} size="xs" square />
      {name}
      {app.health === "unhealthy" ? (
        <span className="text-xs">
          <StatusText tone="bad" quiet>
            unhealthy
          </StatusText>
        </span>
      ) : app.health === "initializing" ? (
        <span className="text-xs">
          <StatusText tone="busy" pulse quiet>
            starting
          </StatusText>
        </span>
      ) : null}
    </>
  );
  if (address === null)
    return (
      <Hint className={buttonClass("secondary", "md", "opacity-50")} text={NEEDS_SUBDOMAIN}>
        {body}
      </Hint>
    );
  const open = (event: MouseEvent) => {
    if (isPlainLink(app, address)) return;
    event.preventDefault();
    openApp(app, address);
  };
  return (
    <a
      className={buttonClass()}
      href={address}
      target="_blank"
      rel="noreferrer"
      title={stateOf(app) || undefined}
      onClick={open}
    >
      {body}
    </a>
  );
}
