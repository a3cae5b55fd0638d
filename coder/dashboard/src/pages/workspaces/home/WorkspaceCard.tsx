// A recent workspace: its state, the ways into it, and the time until it stops.
import { GitBranch, Play, Plug, SquareTerminal } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";

import { useSocket } from "../../../api/socket";
import type { ServerSentEvent, Workspace, WorkspaceAgentMetadata } from "../../../api/types";
import { agentsOf, isUnattached } from "../../../features/workspace/status";
import { Ago } from "../../../ui/Ago";
import { Avatar } from "../../../ui/Avatar";
import { Button, buttonClass, ButtonLink } from "../../../ui/Button";
import { Card } from "../../../ui/Card";
import { toast } from "../../../ui/toast";
import { AppLinks } from "../agent/AppLinks";
import { DesktopLinks } from "../agent/DesktopLinks";
import { startVersion, startWorkspace, useBuildAction, useOpenForValues } from "../builds/builds";
import { terminalPath, workspacePath } from "../paths";
import { useListRights } from "../rights";
import { ScheduleControl } from "../ScheduleControl";
import { WorkspaceStatus } from "../WorkspaceStatus";
import { branchOf } from "./home";

/** Tall enough for every state: a card that fills later moves nothing. */
export const CARD_HEIGHT = "min-h-52";

export function WorkspaceCard({ workspace }: { workspace: Workspace }) {
  const { status, has_external_agent: external } = workspace.latest_build;
  const agent = agentsOf(workspace).find((item) => item.status === "connected");
  const home = workspacePath(workspace);
  const may = useListRights()(workspace);
  const canStart = ["stopped", "failed", "canceled"].includes(status) && !external;
  return (
    <Card className={`flex flex-col gap-3 p-4 ${CARD_HEIGHT}`}>
      <div className="flex items-start gap-3">
        <Avatar name={workspace.template_name} src={workspace.template_icon} square />
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-start justify-between gap-x-3">
            <h3 className="max-w-full truncate font-semibold">
              <Link to={home} className="hover:underline">
                {workspace.name}
              </Link>
            </h3>
            <WorkspaceStatus workspace={workspace} />
          </div>
          <p className="text-sm text-muted [overflow-wrap:anywhere]">
            {workspace.template_display_name || workspace.template_name}&nbsp;· used{" "}
            <Ago at={workspace.last_used_at} />
          </p>
        </div>
      </div>
      {agent && status === "running" ? (
        <>
          <Branch agent={agent.id} first={agent.metadata ?? []} />
          <div className="flex flex-wrap gap-2">
            {agent.display_apps.includes("web_terminal") ? (
              <Link
                to={terminalPath(workspace, agent)}
                target="_blank"
                className={buttonClass("primary")}
                aria-label={`Open a terminal in ${workspace.name}`}
              >
                <SquareTerminal aria-hidden="true" />
                Terminal
              </Link>
            ) : null}
            <DesktopLinks workspace={workspace} agent={agent} />
            <AppLinks workspace={workspace} agent={answering(agent)} />
          </div>
        </>
      ) : canStart && may.start ? (
        <StartButton workspace={workspace} />
      ) : isUnattached(workspace) ? (
        <div>
          <ButtonLink to={home} icon={<Plug />}>
            Attach command
          </ButtonLink>
        </div>
      ) : (
        <p className="text-sm text-muted">
          {status !== "running"
            ? "Nothing to open yet."
            : agentsOf(workspace).length === 0
              ? "There is nothing to connect to."
              : "No agent is connected."}
        </p>
      )}
      <div className="mt-auto min-h-7">
        <ScheduleControl workspace={workspace} allowed={may.update === true} />
      </div>
    </Card>
  );
}

/** The agent with the applications that answer: those without a health check count as answering. */
function answering(agent: ReturnType<typeof agentsOf>[number]) {
  return {
    ...agent,
    apps: agent.apps.filter((app) => app.health === "healthy" || app.health === "disabled"),
  };
}

function StartButton({ workspace }: { workspace: Workspace }) {
  const build = useBuildAction();
  const openForValues = useOpenForValues();
  return (
    <div>
      <Button
        icon={<Play />}
        busy={build.isPending}
        onClick={() =>
          build.mutate(
            () =>
              openForValues(workspace, startVersion(workspace), () => startWorkspace(workspace)),
            { onError: (error) => toast.failed("The action failed", error) },
          )
        }
      >
        Start
      </Button>
    </div>
  );
}

function Branch({ agent, first }: { agent: string; first: readonly WorkspaceAgentMetadata[] }) {
  const [items, setItems] = useState(first);
  useSocket(`/api/v2/workspaceagents/${agent}/watch-metadata-ws`, {
    onMessage: (data) => {
      const event = data as ServerSentEvent;
      if (event.type === "data" && Array.isArray(event.data))
        setItems(event.data as WorkspaceAgentMetadata[]);
    },
  });
  const branch = branchOf(items);
  return (
    <p className="flex h-5 items-center gap-1.5 text-sm text-muted">
      {branch ? (
        <>
          <GitBranch className="size-4 shrink-0" aria-label="Branch" />
          <span className="truncate">{branch}</span>
        </>
      ) : null}
    </p>
  );
}
