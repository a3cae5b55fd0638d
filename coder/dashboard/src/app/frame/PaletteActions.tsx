// Commands of the palette on workspaces, for what the user may do with each.
import { useQueryClient } from "@tanstack/react-query";
import { Clock, Copy, Play, RotateCw, Square, SquareTerminal } from "lucide-react";
import { Command as Palette } from "cmdk";

import { put } from "../../api/client";
import type { Workspace } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { agentsOf } from "../../features/workspace/status";
import { target } from "../../features/workspace/workspace-target";
import {
  startBuild,
  startVersion,
  startWorkspace,
  stopThenStart,
  useOpenForValues,
} from "../../pages/workspaces/builds/builds";
import { terminalPath } from "../../pages/workspaces/paths";
import { useListRights } from "../../pages/workspaces/rights";
import { copyOrReport } from "../../ui/text/clipboard";
import { toast } from "../../ui/toast";
import { labelOf, type Command, type Verb } from "./palette-commands";

const HOUR_MS = 3_600_000;
const ICONS = {
  start: Play,
  stop: Square,
  restart: RotateCw,
  terminal: SquareTerminal,
  extend: Clock,
  copy: Copy,
} as const;

/** Whether the command makes sense for the workspace's state. */
export function isPossible(verb: Verb, workspace: Workspace): boolean {
  const { status, deadline, has_external_agent: external } = workspace.latest_build;
  const connected = agentsOf(workspace).some((agent) => agent.status === "connected");
  switch (verb) {
    case "start":
      return !external && ["stopped", "failed", "canceled"].includes(status);
    case "stop":
    case "restart":
      return !external && status === "running";
    case "extend":
      return status === "running" && Boolean(deadline);
    default:
      return status === "running" && connected;
  }
}

export function PaletteActions({
  command,
  workspaces,
  className,
  onClose,
}: {
  command: Command;
  workspaces: readonly Workspace[];
  className: string;
  onClose: () => void;
}) {
  const viewer = useMe().id;
  const rights = useListRights();
  const queries = useQueryClient();
  const openForValues = useOpenForValues();
  const allowed = (workspace: Workspace) => {
    const may = rights(workspace);
    switch (command.verb) {
      case "start":
        return may.start;
      case "stop":
        return may.stop;
      case "restart":
        return may.start && may.stop;
      case "extend":
        return may.update;
      default:
        return true; // the terminal and SSH ask for permission themselves
    }
  };
  const run = async (workspace: Workspace): Promise<string | null> => {
    const agent = agentsOf(workspace).find((item) => item.status === "connected") ?? null;
    switch (command.verb) {
      case "start":
        await openForValues(workspace, startVersion(workspace), () => startWorkspace(workspace));
        return `Starting ${workspace.name}.`;
      case "stop":
        await startBuild(workspace.id, "stop");
        return `Stopping ${workspace.name}.`;
      case "restart":
        toast.done(`Restarting ${workspace.name}.`);
        await stopThenStart(workspace);
        return null;
      case "extend": {
        const end = Date.parse(workspace.latest_build.deadline ?? "") + command.hours * HOUR_MS;
        await put(`/api/v2/workspaces/${workspace.id}/extend`, {
          deadline: new Date(end).toISOString(),
        });
        return `${workspace.name} runs ${command.hours} h longer.`;
      }
      case "copy": {
        const copied = await copyOrReport(`coder ssh ${target(workspace, agent, viewer)}`);
        return copied ? "Copied." : null;
      }
      case "terminal":
        if (agent) window.open(terminalPath(workspace, agent), "_blank", "noreferrer");
        return null;
    }
  };
  const Icon = ICONS[command.verb];
  return workspaces
    .filter((workspace) => isPossible(command.verb, workspace) && allowed(workspace))
    .slice(0, 5)
    .map((workspace) => {
      const label = labelOf(command, `${workspace.owner_name}/${workspace.name}`);
      return (
        <Palette.Item
          key={workspace.id}
          className={className}
          value={label}
          onSelect={() => {
            onClose();
            void run(workspace)
              .then((done) => done && toast.done(done))
              .catch((error: unknown) => toast.failed("The action failed", error))
              .then(() =>
                queries.invalidateQueries({
                  predicate: ({ queryKey }) => isWorkspaceKey(queryKey),
                }),
              );
          }}
        >
          <Icon className="size-4 text-muted" aria-hidden="true" />
          <span className="truncate">{label}</span>
        </Palette.Item>
      );
    });
}

const isWorkspaceKey = ([first]: readonly unknown[]) =>
  first === "workspace" || first === "workspaces";
