// Development containers of an agent, and other containers it sees.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Container as ContainerIcon, RotateCw, SquareTerminal } from "lucide-react";
import { Link } from "react-router";

import { post } from "../../../api/client";
import { containers } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceAgent, WorkspaceAgentDevcontainer } from "../../../api/types";
import { StatusText, Tag } from "../../../ui/Badge";
import { Button, buttonClass } from "../../../ui/Button";
import { toast } from "../../../ui/toast";
import { terminalPath } from "../paths";

export function Containers({ workspace, agent }: { workspace: Workspace; agent: WorkspaceAgent }) {
  const queries = useQueryClient();
  // An agent without development containers refuses the question.
  const has = workspace.latest_build.resources.some((resource) => resource.type === "coder_devcontainer" || resource.agents?.some((other) => other.parent_id === agent.id));
  const answer = useQuery({ ...containers(agent.id), enabled: agent.parent_id === null && has }).data;
  const found = answer?.devcontainers ?? [];
  if (found.length === 0) return null;
  const recreate = (one: WorkspaceAgentDevcontainer) => void post(`/api/v2/workspaceagents/${agent.id}/containers/devcontainers/${one.id}/recreate`)
    .then(() => queries.invalidateQueries({ queryKey: ["workspaceagents", agent.id] }), (error: unknown) => toast.failed("The container could not be rebuilt", error));
  return (
    <section aria-label="Development containers" className="flex flex-col gap-2">
      <h3 className="text-sm font-medium text-muted">Development containers</h3>
      {found.map((one) => (
        <div key={one.id} className="flex flex-wrap items-center gap-3 rounded-lg border border-line px-3 py-2">
          <ContainerIcon className="size-4 text-muted" aria-hidden="true" />
          <span className="min-w-0 flex-1"><span className="font-medium">{one.name}</span> <span className="text-sm text-muted">{one.workspace_folder}</span>{one.error ? <span className="block text-sm text-bad">{one.error}</span> : null}</span>
          <StatusText tone={one.status === "running" ? "good" : one.status === "error" ? "bad" : one.status === "stopped" ? "idle" : "busy"}>{one.status}</StatusText>
          {one.dirty ? <Tag tone="warn">Outdated</Tag> : null}
          <Button size="sm" icon={<RotateCw />} onClick={() => recreate(one)}>{one.container ? "Rebuild" : "Start"}</Button>
          {one.container && one.status === "running" ? <Link className={buttonClass("secondary", "sm")} target="_blank" to={`${terminalPath(workspace, agent)}?container=${encodeURIComponent(one.container.name)}`}><SquareTerminal aria-hidden="true" />Terminal</Link> : null}
        </div>
      ))}
    </section>
  );
}
