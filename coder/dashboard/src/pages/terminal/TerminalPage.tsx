// A web terminal. A reload or a lost connection returns to the same terminal: its id is in the
// address.
import { useQuery } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";

import { ApiError } from "../../api/client";
import { workspaceByName } from "../../api/queries/workspaces";
import type { Workspace, WorkspaceAgent } from "../../api/types";
import { Button, ButtonLink, IconButton, Spinner } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Failure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { useTitle } from "../../ui/title";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { agentsOf } from "../../features/workspace/status";
import { useWorkspaceWatch } from "../../features/workspace/watch";
import type { TerminalRequest, TerminalState } from "./stream";
import { TerminalView } from "./TerminalView";

export function TerminalPage() {
  const params = useParams();
  const owner = (params["owner"] ?? "").replace(/^@/, "");
  const [name = "", agentName] = (params["workspace"] ?? "").split(".");
  useTitle("Terminal", `${owner}/${name}`);
  const query = workspaceByName(owner, name);
  const workspaceQuery = useQuery(query);
  useWorkspaceWatch(workspaceQuery.data?.id, query.queryKey);
  if (
    !params["owner"]?.startsWith("@") ||
    (workspaceQuery.error instanceof ApiError && workspaceQuery.error.status === 404)
  )
    return (
      <main className="flex-1">
        <NotFoundPage subject={`The workspace ${owner}/${name}`} />
      </main>
    );
  if (workspaceQuery.isPending) return <Loading />;
  if (!workspaceQuery.data)
    return (
      <main className="p-6">
        <Failure error={workspaceQuery.error} retry={() => void workspaceQuery.refetch()} />
      </main>
    );
  const agents = agentsOf(workspaceQuery.data);
  const agent = agentName ? agents.find((item) => item.name === agentName) : agents[0];
  return <Ready workspace={workspaceQuery.data} agent={agent} />;
}

function Ready({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent | undefined }) {
  const home = `/@${workspace.owner_name}/${workspace.name}`;
  const [state, setState] = useState<TerminalState>("connecting");
  const [attempt, setAttempt] = useState(0);
  const [searching, setSearching] = useState(false);
  const first = useRef<HTMLAnchorElement>(null);
  const leaveHint = useId();
  const request = useRequest(agent);
  // The confirmed command. An application's own command has to match the template, which may change
  // while the page is open.
  const [confirmed, setConfirmed] = useState<string | null>(null);
  const allowed = request.trusted || confirmed === request.command;
  const [confirming, setConfirming] = useState(!request.trusted);
  const running = workspace.latest_build.status === "running";
  // No connection without a running workspace; the known state of its agent is outdated then.
  const shown = running ? state : "disconnected";
  const phase = running ? agent?.lifecycle_state : undefined;
  return (
    <main data-fills-window className="flex h-dvh min-h-0 flex-none flex-col overflow-hidden bg-bg">
      <h1 className="sr-only">Terminal of {workspace.name}</h1>
      <header className="flex items-center gap-3 border-b border-line bg-surface px-3 py-1.5 text-sm">
        <Link ref={first} to={home} className="font-medium hover:underline">
          {workspace.owner_name}/{workspace.name}
        </Link>
        <span className="text-muted">{agent?.name}</span>
        <span id={leaveHint} className="text-xs text-faint pointer-coarse:hidden">
          Ctrl+Shift+L leaves the terminal
        </span>
        <span
          role="status"
          data-testid="terminal-status"
          data-status={shown}
          className="ml-auto flex items-center gap-2 text-muted"
        >
          {shown === "connecting" ? (
            <>
              <Spinner />
              Connecting…
            </>
          ) : shown === "connected" ? (
            "Connected"
          ) : (
            "Disconnected"
          )}
        </span>
        {agent && running ? (
          <IconButton
            size="sm"
            label="Search the terminal (Ctrl+Shift+F)"
            aria-pressed={searching}
            onClick={() => setSearching(!searching)}
          >
            <Search />
          </IconButton>
        ) : null}
        {running && shown === "disconnected" ? (
          <Button size="sm" onClick={() => setAttempt(attempt + 1)}>
            Reconnect
          </Button>
        ) : null}
      </header>
      {!running ? (
        <div className="p-3">
          <Notice
            kind="warning"
            title="The workspace is not running"
            actions={
              <ButtonLink size="sm" to={home}>
                View workspace
              </ButtonLink>
            }
          >
            Start the workspace. This page then connects automatically.
          </Notice>
        </div>
      ) : null}
      {phase === "starting" ? (
        <div className="px-3 pt-3">
          <Notice kind="info" title="The startup scripts are still running">
            You can use the terminal, but some tools may not be installed yet.
          </Notice>
        </div>
      ) : null}
      {phase === "start_error" ? (
        <div className="px-3 pt-3">
          <Notice kind="warning" title="A startup script failed">
            The workspace may be incomplete. The agent’s log shows the error.
          </Notice>
        </div>
      ) : null}
      {running && !agent ? (
        <div className="p-3">
          <Notice
            kind="warning"
            title="This workspace has no such agent"
            actions={
              <ButtonLink size="sm" to={home}>
                View workspace
              </ButtonLink>
            }
          />
        </div>
      ) : null}
      {agent && allowed && running ? (
        <TerminalView
          key={`${agent.id} ${attempt}`}
          agent={agent}
          workspace={workspace}
          request={request}
          onState={setState}
          searching={searching}
          onSearching={setSearching}
          onLeave={() => first.current?.focus()}
          leaveHint={leaveHint}
        />
      ) : null}
      {allowed || confirming ? null : (
        <div className="p-3">
          <Notice
            kind="info"
            title="The command was not run"
            actions={
              <>
                <Button size="sm" onClick={() => setConfirming(true)}>
                  Review command
                </Button>
                <ButtonLink size="sm" to={home}>
                  View workspace
                </ButtonLink>
              </>
            }
          />
        </div>
      )}
      <Confirm
        open={confirming}
        onClose={() => setConfirming(false)}
        danger={false}
        title="Run command?"
        confirm="Run command"
        onConfirm={async () => setConfirmed(request.command)}
      >
        <p>
          The link you opened runs this command in your workspace. Continue only if you trust the
          source of the link.
        </p>
        <pre className="overflow-x-auto rounded-lg border border-line bg-inset p-3 text-sm whitespace-pre-wrap">
          {request.command}
        </pre>
      </Confirm>
    </main>
  );
}

function useRequest(agent: WorkspaceAgent | undefined): TerminalRequest {
  const [params, setParams] = useSearchParams();
  const [fresh] = useState(() => newId());
  const reconnect = params.get("reconnect") ?? fresh;
  useEffect(() => {
    if (!params.get("reconnect"))
      setParams(
        (old) => {
          const next = new URLSearchParams(old);
          next.set("reconnect", fresh);
          return next;
        },
        { replace: true },
      );
  }, [params, setParams, fresh]);
  // Only a command from the template needs no confirmation: the name of an application without a
  // command vouches for no other command.
  const offered = agent?.apps.find((item) => item.slug === params.get("app"))?.command ?? "";
  const command = offered || (params.get("command") ?? "");
  const trusted = offered !== "" || command === "";
  const resumed = reconnect !== fresh;
  const container = params.get("container") ?? "";
  const containerUser = params.get("container_user") ?? "";
  return useMemo(
    () => ({ reconnect, command, container, containerUser, trusted, resumed }),
    [reconnect, command, container, containerUser, trusted, resumed],
  );
}

// crypto.randomUUID exists only on HTTPS and localhost.
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
