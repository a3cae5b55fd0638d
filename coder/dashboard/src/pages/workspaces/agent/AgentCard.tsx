// An agent: its connection, connection methods, metadata, applications and log.
import { SquareTerminal } from "lucide-react";
import { Link } from "react-router";

import { useWorkspaceRights } from "../../../api/permissions";
import { useMissingProgram } from "../../../api/queries/programs";
import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { Tag } from "../../../ui/Badge";
import { buttonClass } from "../../../ui/Button";
import { Card } from "../../../ui/Card";
import { Notice } from "../../../ui/Notice";
import { CodeBox } from "../../../ui/text/CodeBox";
import { WithCode } from "../../../ui/text/WithCode";
import { useMe } from "../../../features/session/useMe";
import { target } from "../../../features/workspace/workspace-target";
import { AgentHealth, LastDisconnect } from "./AgentHealth";
import { AgentLogs } from "../../../features/workspace/AgentLogs";
import { AgentMetadata } from "./AgentMetadata";
import { AgentStatus, Troubleshooting } from "./AgentStatus";
import { AppLinks } from "./AppLinks";
import { Containers } from "./Containers";
import { DesktopLinks } from "./DesktopLinks";
import { Reattach, ExternalPanel } from "./ExternalPanel";
import { TextLink } from "../../../ui/Page";
import { connectionPath, terminalPath, workspacePath } from "../paths";
import { useMayConnect } from "../useMayConnect";
import { PortsButton } from "./Ports";
import { SshButton } from "./SshButton";
import { Hint } from "../../../ui/Hint";

export function AgentCard({
  workspace,
  agent,
  external,
}: {
  workspace: Workspace;
  agent: WorkspaceAgent;
  external: boolean;
}) {
  const waiting = agent.status === "connecting" || agent.status === "timeout";
  const connected = agent.status === "connected";
  const viewer = useMe().id;
  const mayConnect = useMayConnect(workspace);
  const may = useWorkspaceRights(workspace);
  const offers = (name: WorkspaceAgent["display_apps"][number]) =>
    agent.display_apps.includes(name);
  return (
    <Card
      role="article"
      data-agent={agent.id}
      aria-label={`Agent ${agent.name}`}
      className="flex flex-col gap-4 p-5"
    >
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h2 className="text-lg font-semibold">{agent.name}</h2>
        <AgentStatus agent={agent} external={external} />
        <AgentLifecycle agent={agent} />
        <span className="text-sm text-muted">
          {agent.operating_system} · {agent.architecture}
          {agent.version ? ` · ${agent.version}` : ""}
          <Latency agent={agent} />
        </span>
        {connected && mayConnect ? (
          <div className="ml-auto flex flex-wrap items-center gap-1 max-sm:-mx-3">
            {offers("ssh_helper") ? <SshButton workspace={workspace} agent={agent} /> : null}
            {offers("port_forwarding_helper") ? (
              <PortsButton workspace={workspace} agent={agent} />
            ) : null}
          </div>
        ) : null}
      </header>
      {external && waiting ? (
        may.update === false ? (
          <p className="text-muted">
            You need update permission on this workspace to attach a machine.
          </p>
        ) : may.update ? (
          <ExternalPanel workspace={workspace} agent={agent} />
        ) : null
      ) : null}
      {external && agent.status === "disconnected" ? (
        <Notice kind="warning" title="The agent has disconnected">
          {agent.disconnected_at ? (
            <p>
              Last seen <Ago at={agent.disconnected_at} />.
            </p>
          ) : null}
          <LastDisconnect agent={agent} />
          It reconnects automatically when the machine and its network are back.
          {may.update ? (
            <>
              {" "}
              If the agent was stopped, run its command again:
              <details className="mt-2">
                <summary>Show command</summary>
                <div className="mt-2">
                  <ExternalPanel workspace={workspace} agent={agent} />
                </div>
              </details>
            </>
          ) : null}
        </Notice>
      ) : null}
      {external && connected && may.update ? (
        <Reattach workspace={workspace} agent={agent} />
      ) : null}
      {!external && waiting ? <Waiting agent={agent} /> : null}
      {!external && agent.status === "timeout" ? (
        <Notice
          kind="warning"
          title="The agent did not connect in time"
          actions={<Troubleshooting agent={agent} />}
        >
          Check the{" "}
          <TextLink
            to={`${workspacePath(workspace)}/builds/${workspace.latest_build.build_number}`}
          >
            build log
          </TextLink>{" "}
          and the machine itself: the agent’s start command may have failed.
        </Notice>
      ) : null}
      {!external && agent.status === "disconnected" ? (
        <Notice
          kind="warning"
          title="The agent has disconnected"
          actions={<Troubleshooting agent={agent} />}
        >
          {agent.disconnected_at ? (
            <>
              Last seen <Ago at={agent.disconnected_at} />.{" "}
            </>
          ) : null}
          It reconnects automatically when its machine is back.
          <LastDisconnect agent={agent} />
        </Notice>
      ) : null}
      {connected ? (
        <>
          {mayConnect ? null : (
            <p className="text-muted">
              You can view this workspace but not connect to it. Ask its owner to share it with you.
            </p>
          )}
          {mayConnect ? (
            <>
              <CodeBox
                label="Command that opens a shell"
                command={`coder ssh ${target(workspace, agent, viewer)}`}
                testId="ssh-command"
              />
              <div className="flex flex-wrap gap-2">
                {offers("web_terminal") ? (
                  <Link
                    to={terminalPath(workspace, agent)}
                    target="_blank"
                    data-testid="terminal"
                    className={buttonClass()}
                  >
                    <SquareTerminal aria-hidden="true" />
                    Terminal
                  </Link>
                ) : null}
                <DesktopLinks workspace={workspace} agent={agent} />
                <AppLinks workspace={workspace} agent={agent} />
              </div>
            </>
          ) : null}
          <LastDisconnect agent={agent} />
          <AgentMetadata agent={agent} />
          <Containers agent={agent} workspace={workspace} mayConnect={mayConnect} />
        </>
      ) : null}
      {connected || agent.status === "disconnected" ? (
        <AgentHealth
          agent={agent}
          pathLink={
            connected ? (
              <TextLink to={connectionPath(workspace, agent)}>Why is it slow?</TextLink>
            ) : null
          }
        />
      ) : null}
      <AgentLogs agent={agent} />
    </Card>
  );
}

/**
 * A user who waits for an agent learns at once that the server has no program for it, not only
 * after the timeout.
 */
function Waiting({ agent }: { agent: WorkspaceAgent }) {
  const missingProgram = useMissingProgram()(`${agent.operating_system}/${agent.architecture}`);
  if (!missingProgram)
    return agent.status === "timeout" ? null : (
      <p className="text-sm text-muted">
        Waiting for the agent to connect; usually under a minute.
      </p>
    );
  return (
    <Notice kind="warning" title="This server has no program for the agent’s platform">
      <p>
        The agent can only connect if <code>coder</code> is installed on the machine. Otherwise it
        waits until the server has the program.
      </p>
      <p>
        For administrators: <WithCode text={missingProgram.remedy} />
      </p>
    </Notice>
  );
}

function AgentLifecycle({ agent }: { agent: WorkspaceAgent }) {
  if (agent.status !== "connected") return null;
  switch (agent.lifecycle_state) {
    case "starting":
      return <Tag tone="busy">Startup scripts running</Tag>;
    case "start_timeout":
      return (
        <Tag tone="warn" title="The startup scripts exceed their time limit.">
          Slow startup scripts
        </Tag>
      );
    case "start_error":
      return (
        <Tag tone="bad" title="A startup script failed; see the log.">
          Startup script failed
        </Tag>
      );
    case "shutting_down":
      return <Tag tone="busy">Shutting down</Tag>;
    case "shutdown_error":
      return <Tag tone="bad">Shutdown script failed</Tag>;
    default:
      return null;
  }
}

function Latency({ agent }: { agent: WorkspaceAgent }) {
  const regions = Object.entries(
    (agent.latency ?? {}) as Record<string, { preferred: boolean; latency_ms: number }>,
  );
  const best = regions.find(([, region]) => region.preferred) ?? regions[0];
  return best ? (
    <Hint
      text={regions
        .map(([name, region]) => `${name}: ${Math.round(region.latency_ms)} ms`)
        .join("\n")}
    >
      {" "}
      · {Math.round(best[1].latency_ms)} ms to relay
    </Hint>
  ) : null;
}
