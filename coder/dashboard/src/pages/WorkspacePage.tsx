// One workspace: its state, its actions, its agents. An external one shows how to attach the machine.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "react-router";

import { ApiError, get, post } from "../api/client";
import { workspaceByName } from "../api/queries";
import type { Workspace, WorkspaceAgent } from "../api/types";
import { useWorkspaceWatch } from "../api/watch";
import { AgentLog } from "../components/AgentLog";
import { AppLinks } from "../components/AppLinks";
import { BuildLog } from "../components/BuildLog";
import { ExternalAgentPanel } from "../components/ExternalAgentPanel";
import { Failure } from "../components/Failure";
import { Loading } from "../components/Loading";
import { Notice } from "../components/Notice";
import { AgentBadge, WorkspaceBadge } from "../components/StatusBadge";
import { ago } from "../components/time";
import { useTitle } from "../components/title";
import { NotFoundPage } from "./NotFoundPage";

export function WorkspacePage() {
  const params = useParams();
  const owner = params["owner"] ?? "";
  // The router cannot tell /@ana/dev from any other path of two parts.
  return owner.startsWith("@") ? <Found owner={owner.slice(1)} name={params["workspace"] ?? ""} /> : <NotFoundPage />;
}

function Found({ owner, name }: { owner: string; name: string }) {
  useTitle(`${owner}/${name}`);
  const query = workspaceByName(owner, name);
  const found = useQuery(query);
  const live = useWorkspaceWatch(found.data?.id, query.queryKey);
  if (found.isPending) return <Loading />;
  if (found.isError) {
    if (found.error instanceof ApiError && found.error.status === 404) return <NotFoundPage />;
    if (!found.data) return <Failure error={found.error} retry={() => void found.refetch()} />;
  }
  return (
    <>
      {live ? null : <Notice kind="warning" title="The connection to the server is lost.">Trying again by itself. Below is what was last known.</Notice>}
      <Loaded workspace={found.data} />
    </>
  );
}

function Loaded({ workspace }: { workspace: Workspace }) {
  const build = workspace.latest_build;
  const active = build.job.status === "pending" || build.job.status === "running" || build.job.status === "canceling";
  const agents = build.resources.flatMap((resource) =>
    (resource.agents ?? []).map((agent) => ({ agent, external: resource.type === "coder_external_agent" })),
  );
  return (
    <>
      <nav className="crumbs" aria-label="Breadcrumb"><Link to="/workspaces">Workspaces</Link> / <span>{workspace.owner_name}</span></nav>
      <div className="head">
        <h1>{workspace.name}</h1>
        <WorkspaceBadge workspace={workspace} />
        <Actions workspace={workspace} />
      </div>
      {build.has_external_agent ? <p id="external-reason" className="faint reason">{EXTERNAL_REASON}</p> : null}
      <p className="faint">
        {workspace.template_display_name || workspace.template_name} · version {build.template_version_name} · built {ago(build.created_at)}
      </p>
      {build.job.error ? <Notice kind="error" title="The last build failed.">{build.job.error}</Notice> : null}
      {active || build.status === "failed" ? <BuildLog key={build.id} build={build.id} /> : null}
      {build.status === "deleted" ? <Notice kind="info" title="This workspace has been deleted." /> : null}
      {build.status === "stopped" ? <Notice kind="info" title="This workspace is stopped.">Start it to reach its agents.</Notice> : null}
      {agents.map(({ agent, external }) => (
        <AgentCard key={agent.id} workspace={workspace} agent={agent} external={external} />
      ))}
    </>
  );
}

const EXTERNAL_REASON = "This machine is managed elsewhere: Coder cannot start, stop or restart it.";

function Actions({ workspace }: { workspace: Workspace }) {
  const queries = useQueryClient();
  const build = useMutation({
    mutationFn: async (transitions: readonly string[]) => {
      for (const [index, transition] of transitions.entries()) {
        if (index > 0) await buildEnded(workspace.id);
        await post(`/api/v2/workspaces/${workspace.id}/builds`, { transition, reason: "dashboard" });
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["workspace"] }),
  });
  const status = workspace.latest_build.status;
  const external = workspace.latest_build.has_external_agent === true;
  const button = (label: string, testId: string, transitions: readonly string[], possible: boolean) => (
    <button type="button" data-testid={testId} disabled={external || !possible || build.isPending} title={external ? EXTERNAL_REASON : undefined}
      aria-describedby={external ? "external-reason" : undefined} onClick={() => build.mutate(transitions)}>
      {label}
    </button>
  );
  return (
    <div className="actions">
      {button("Start", "workspace-start", ["start"], status === "stopped" || status === "failed" || status === "canceled")}
      {button("Stop", "workspace-stop-button", ["stop"], status === "running" || status === "failed")}
      {button("Restart", "workspace-restart-button", ["stop", "start"], status === "running")}
      {build.isError ? <Notice kind="error" title={build.error.message} /> : null}
    </div>
  );
}

const POLL_MS = 700;

// The server refuses a build while another is active, so a restart waits for its stop to end.
async function buildEnded(id: string): Promise<void> {
  for (;;) {
    const { latest_build: build } = await get<Workspace>(`/api/v2/workspaces/${id}`);
    if (build.job.status === "failed" || build.job.status === "canceled") throw new Error(`The stop ${build.job.status}.`);
    if (build.job.status === "succeeded") return;
    await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
  }
}

function AgentCard({ workspace, agent, external }: { workspace: Workspace; agent: WorkspaceAgent; external: boolean }) {
  const waiting = agent.status === "connecting" || agent.status === "timeout";
  return (
    <article data-agent={agent.id} className={`agent ${agent.status}`} aria-label={`Agent ${agent.name}`}>
      <header>
        <h2>{agent.name}</h2>
        <AgentBadge agent={agent} />
        <span className="faint">{agent.operating_system} · {agent.architecture}{agent.version ? ` · ${agent.version}` : ""}</span>
      </header>
      {external && waiting ? <ExternalAgentPanel workspace={workspace} agent={agent} /> : null}
      {external && agent.status === "disconnected" ? (
        <Notice kind="warning" title="The agent has lost its connection.">
          It comes back by itself when the machine and its network do. If it was ended, run its command again:
          <details>
            <summary>Show the command</summary>
            <ExternalAgentPanel workspace={workspace} agent={agent} />
          </details>
        </Notice>
      ) : null}
      {agent.status === "connected" ? (
        <p>
          Connect with <code>coder ssh {workspace.name}</code>, or with plain <code>ssh {workspace.name}.coder</code> after <code>coder config-ssh</code>.
        </p>
      ) : null}
      {agent.status === "connected" ? <AppLinks workspace={workspace} agent={agent} /> : null}
      {agent.health.reason && !waiting && agent.status !== "disconnected" ? <Notice kind="warning" title={agent.health.reason} /> : null}
      <AgentLog agent={agent.id} />
    </article>
  );
}
