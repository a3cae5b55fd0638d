// Quick actions of one row: applications and terminal while it runs, and a menu.
import { useQueryClient } from "@tanstack/react-query";
import {
  EllipsisVertical,
  Play,
  Plug,
  Settings,
  Square,
  SquareTerminal,
  Star,
  StarOff,
  Trash2,
} from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";

import { useAppBase } from "../../api/app-base";
import { put, remove } from "../../api/client";
import { NO_CHANGES, useMayCreateWorkspace } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Avatar } from "../../ui/Avatar";
import { buttonClass, IconButton } from "../../ui/Button";
import { Menu, MenuItem, MenuNote, MenuSeparator } from "../../ui/Menu";
import { toast } from "../../ui/toast";
import { addressOf } from "../../features/workspace/app-address";
import { appEntry, isPlainLink, openApp } from "./agent/app-open";
import { startBuild, startVersion, startWorkspace, useOpenForValues } from "./builds/builds";
import { DeleteWorkspace } from "./DeleteWorkspace";
import { Duplicate } from "./Duplicate";
import { terminalPath } from "./paths";
import { useMayConnect } from "./useMayConnect";
import { useListRights } from "./rights";
import { agentsOf, isUnattached } from "../../features/workspace/status";

const SHOWN_APPS = 2;

export function RowActions({ workspace }: { workspace: Workspace }) {
  const queries = useQueryClient();
  const base = useAppBase();
  const mayConnect = useMayConnect(workspace);
  const mayCreate = useMayCreateWorkspace(workspace.organization_id);
  const may = useListRights()(workspace);
  const me = useMe().id;
  const own = me === workspace.owner_id;
  const [deleting, setDeleting] = useState(false);
  const openForValues = useOpenForValues();
  const status = workspace.latest_build.status;
  const external = workspace.latest_build.has_external_agent === true;
  const agent = agentsOf(workspace).find((item) => item.status === "connected");
  const apps = (agent && base ? agent.apps : [])
    .flatMap((app) => {
      const address = agent && base ? addressOf(app, workspace, agent, base, me) : null;
      return app.hidden || app.health === "unhealthy" || address === null ? [] : [{ app, address }];
    })
    .slice(0, SHOWN_APPS);
  const home = `/@${workspace.owner_name}/${workspace.name}`;
  const act = (run: () => Promise<unknown>, message: string) =>
    void run()
      .then(
        () => toast.done(message),
        (error: unknown) => toast.failed("The action failed", error),
      )
      .then(() => queries.invalidateQueries({ queryKey: ["workspaces"] }));
  const start = () =>
    void openForValues(workspace, startVersion(workspace), () =>
      startWorkspace(workspace).then(() => toast.done(`Starting ${workspace.name}.`)),
    )
      .catch((error: unknown) => toast.failed("The action failed", error))
      .then(() => queries.invalidateQueries({ queryKey: ["workspaces"] }));
  return (
    <div className="flex items-center justify-end gap-1">
      {status === "running" && agent && mayConnect ? (
        <span className="contents max-lg:hidden">
          {apps.map(({ app, address }) => (
            <a
              key={app.id}
              href={address}
              target="_blank"
              rel="noreferrer"
              title={app.display_name || app.slug}
              aria-label={`Open ${app.display_name || app.slug} of ${workspace.name}`}
              className={buttonClass("quiet", "md", "w-8.5 px-0! max-lg:hidden")}
              onClick={(event) => {
                if (!isPlainLink(app, address)) {
                  event.preventDefault();
                  openApp(app, address);
                }
              }}
            >
              <Avatar name={app.display_name || app.slug} src={app.icon} size="xs" square />
            </a>
          ))}
          <Link
            to={terminalPath(workspace, agent)}
            target="_blank"
            title="Terminal"
            aria-label={`Open a terminal in ${workspace.name}`}
            className={buttonClass("quiet", "md", "w-8.5 px-0! max-lg:hidden")}
          >
            <SquareTerminal />
          </Link>
        </span>
      ) : null}
      <Menu
        trigger={
          <IconButton
            label={`Actions for ${workspace.name}`}
            data-testid={`actions-${workspace.name}`}
          >
            <EllipsisVertical />
          </IconButton>
        }
      >
        {/* In all layouts, and on a narrow screen only here. */}
        {status === "running" && agent && mayConnect ? (
          <>
            {apps.map(({ app, address }) => (
              <MenuItem
                key={app.id}
                {...appEntry(app, address)}
                icon={
                  <Avatar name={app.display_name || app.slug} src={app.icon} size="xs" square />
                }
              >
                {app.display_name || app.slug}
              </MenuItem>
            ))}
            <MenuItem href={terminalPath(workspace, agent)} icon={<SquareTerminal />}>
              Terminal
            </MenuItem>
            <MenuSeparator />
          </>
        ) : null}
        {isUnattached(workspace) && may.update ? (
          <MenuItem icon={<Plug />} to={home}>
            Attach command
          </MenuItem>
        ) : null}
        {status === "running" && may.stop && !external ? (
          <MenuItem
            icon={<Square />}
            onSelect={() =>
              act(() => startBuild(workspace.id, "stop"), `Stopping ${workspace.name}.`)
            }
          >
            Stop
          </MenuItem>
        ) : null}
        {["stopped", "failed", "canceled"].includes(status) && may.start && !external ? (
          <MenuItem icon={<Play />} onSelect={start}>
            Start
          </MenuItem>
        ) : null}
        {!own ? null : workspace.favorite ? (
          <MenuItem
            icon={<StarOff />}
            onSelect={() =>
              act(
                () => remove(`/api/v2/workspaces/${workspace.id}/favorite`),
                "Removed from favorites.",
              )
            }
          >
            Remove from favorites
          </MenuItem>
        ) : (
          <MenuItem
            icon={<Star />}
            onSelect={() =>
              act(() => put(`/api/v2/workspaces/${workspace.id}/favorite`), "Added to favorites.")
            }
          >
            Add to favorites
          </MenuItem>
        )}
        {may.update ? (
          <MenuItem icon={<Settings />} to={`${home}/settings`}>
            Settings
          </MenuItem>
        ) : null}
        <Duplicate workspace={workspace} mayCreate={mayCreate} />
        {may.remove ? (
          <>
            <MenuSeparator />
            <MenuItem icon={<Trash2 />} danger onSelect={() => setDeleting(true)}>
              Delete…
            </MenuItem>
          </>
        ) : null}
        {may.update === false && !may.start && !may.stop && !may.remove ? (
          <MenuNote>{NO_CHANGES}</MenuNote>
        ) : null}
      </Menu>
      <DeleteWorkspace workspace={workspace} open={deleting} onClose={() => setDeleting(false)} />
    </div>
  );
}
