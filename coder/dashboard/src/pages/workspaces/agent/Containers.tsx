// Dev containers of an agent: live, with their apps and terminals, rebuilding and deleting.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Container as ContainerIcon, RotateCw, SquareTerminal, Trash2 } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";

import { useAppBase } from "../../../api/app-base";
import { post, remove } from "../../../api/client";
import { setServerData } from "../../../api/optimistic";
import { containers } from "../../../api/queries/workspaces";
import { useSocket } from "../../../api/socket";
import type {
  Workspace,
  WorkspaceAgent,
  WorkspaceAgentDevcontainer,
  WorkspaceAgentListContainersResponse,
} from "../../../api/types";
import { StatusText, Tag, type Tone } from "../../../ui/Badge";
import { Button, buttonClass, IconButton } from "../../../ui/Button";
import { Confirm } from "../../../ui/Confirm";
import { LoadFailure } from "../../../ui/Failure";
import { toast } from "../../../ui/toast";
import { terminalPath } from "../paths";
import { portAddress } from "../../../features/workspace/port-address";

type Status = WorkspaceAgentDevcontainer["status"];

const STATUS: Record<Status, readonly [word: string, tone: Tone]> = {
  running: ["Running", "good"],
  stopped: ["Stopped", "idle"],
  starting: ["Starting", "busy"],
  stopping: ["Stopping", "busy"],
  deleting: ["Deleting", "busy"],
  error: ["Failed", "bad"],
};
const RESTING: readonly Status[] = ["running", "stopped", "error"];

interface ContainersProps {
  workspace: Workspace;
  agent: WorkspaceAgent;
  /** Whether the user may connect to the workspace, not only view it. */
  mayConnect: boolean;
}

export function Containers({ workspace, agent, mayConnect }: ContainersProps) {
  const queries = useQueryClient();
  const [deleting, setDeleting] = useState<WorkspaceAgentDevcontainer | null>(null);
  // An agent without dev containers rejects the request.
  const has = workspace.latest_build.resources.some(
    (resource) =>
      resource.type === "coder_devcontainer" ||
      resource.agents?.some((other) => other.parent_id === agent.id),
  );
  const query = containers(agent.id);
  const list = useQuery({ ...query, enabled: agent.parent_id === null && has });
  const answer = list.data;
  useSocket(answer ? `/api/v2/workspaceagents/${agent.id}/containers/watch` : null, {
    onMessage: (data) =>
      setServerData(queries, query.queryKey, data as WorkspaceAgentListContainersResponse),
  });
  const containerList = answer?.devcontainers ?? [];
  if (containerList.length === 0)
    return <LoadFailure query={list} title="Failed to load the dev containers" />;
  const path = (devcontainer: WorkspaceAgentDevcontainer) =>
    `/api/v2/workspaceagents/${agent.id}/containers/devcontainers/${devcontainer.id}`;
  const refresh = () => queries.invalidateQueries({ queryKey: query.queryKey });
  const build = (devcontainer: WorkspaceAgentDevcontainer) =>
    void post(`${path(devcontainer)}/recreate`).then(refresh, (error: unknown) =>
      toast.failed("Failed to rebuild the container", error),
    );
  return (
    <section aria-label="Dev containers" className="flex flex-col gap-2">
      <h3 className="text-sm font-medium text-muted">Dev containers</h3>
      {answer?.warnings?.map((warning) => (
        <p key={warning} className="text-sm text-warn">
          {warning}
        </p>
      ))}
      {containerList.map((devcontainer) => (
        <Row
          key={devcontainer.id}
          devcontainer={devcontainer}
          workspace={workspace}
          agent={agent}
          mayConnect={mayConnect}
          onBuild={() => build(devcontainer)}
          onDelete={() => setDeleting(devcontainer)}
        />
      ))}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete container ${deleting?.name ?? ""}?`}
        confirm="Delete"
        onConfirm={async () => {
          if (deleting) await remove(path(deleting));
          await refresh();
        }}
      >
        Changes inside the container but outside its workspace folder are lost. The container can be
        rebuilt.
      </Confirm>
    </section>
  );
}

interface RowProps extends ContainersProps {
  devcontainer: WorkspaceAgentDevcontainer;
  onBuild: () => void;
  onDelete: () => void;
}

function Row({ devcontainer: one, workspace, agent, mayConnect, onBuild, onDelete }: RowProps) {
  const host = useAppBase()?.host ?? "";
  const [word, tone] = STATUS[one.status];
  const resting = RESTING.includes(one.status);
  const running = one.status === "running" && one.container !== undefined;
  const ports =
    running && host !== "" ? (one.container?.ports ?? []).filter((port) => port.host_port) : [];
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-2 rounded-lg border border-line px-3 py-2">
      <ContainerIcon className="size-4 text-muted" aria-hidden="true" />
      <div className="min-w-0 flex-1 basis-48 [overflow-wrap:anywhere]">
        <span className="font-medium">{one.name}</span>{" "}
        <span className="text-sm text-muted">{one.workspace_folder}</span>
        {one.error ? <p className="text-sm text-bad">{one.error}</p> : null}
      </div>
      <StatusText tone={tone} pulse={!resting}>
        {word}
      </StatusText>
      {one.dirty ? (
        <Tag tone="warn" title="The configuration has changed since the last build.">
          Outdated
        </Tag>
      ) : null}
      {mayConnect ? (
        <div className="flex flex-wrap items-center gap-2">
          {ports.map((port) => (
            <a
              key={port.port}
              className={buttonClass("quiet", "sm")}
              href={portAddress(host, port.host_port ?? port.port, "http", workspace, agent.name)}
              target="_blank"
              rel="noreferrer"
            >
              Port {port.port}
            </a>
          ))}
          {running ? (
            <Link
              className={buttonClass("secondary", "sm")}
              target="_blank"
              to={`${terminalPath(workspace, agent)}?container=${encodeURIComponent(one.container?.name ?? "")}`}
              aria-label={`Terminal in ${one.name}`}
            >
              <SquareTerminal aria-hidden="true" />
              Terminal
            </Link>
          ) : null}
          <Button
            size="sm"
            icon={<RotateCw />}
            disabled={!resting}
            onClick={onBuild}
            aria-label={`${one.container ? "Rebuild" : "Start"} ${one.name}`}
          >
            {one.container ? "Rebuild" : "Start"}
          </Button>
          {one.container ? (
            <IconButton
              size="sm"
              label={`Delete container ${one.name}`}
              disabled={!resting}
              onClick={onDelete}
            >
              <Trash2 />
            </IconButton>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}
