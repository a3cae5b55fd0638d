// The resources of a workspace with their metadata, agents first.
import { useState } from "react";

import type { Workspace } from "../../api/types";
import { AgentCard } from "./agent/AgentCard";
import { ResourceRow } from "../../features/workspace/ResourceRow";
import { Notice } from "../../ui/Notice";
import { counted } from "../../lib/words";

export function Resources({ workspace }: { workspace: Workspace }) {
  const all = workspace.latest_build.resources;
  const agents = all.flatMap((resource) =>
    (resource.agents ?? []).map((agent) => ({
      agent,
      external: resource.type === "coder_external_agent",
    })),
  );
  const rest = all.filter(
    (resource) =>
      !resource.hide && (!resource.agents?.length || (resource.metadata?.length ?? 0) > 0),
  );
  const hidden = all.filter((resource) => resource.hide && !resource.agents?.length);
  const [more, setMore] = useState(false);
  return (
    <>
      {agents.length === 0 && workspace.latest_build.status === "running" ? (
        <Notice kind="info" title="This workspace has no agent">
          There is nothing to connect to. To open terminals and applications, add a{" "}
          <code>coder_agent</code> to a resource of the template and update the workspace.
        </Notice>
      ) : null}
      {agents.map(({ agent, external }) => (
        <AgentCard key={agent.id} workspace={workspace} agent={agent} external={external} />
      ))}
      {rest.length > 0 || hidden.length > 0 ? (
        <section aria-label="Resources" className="flex flex-col gap-2">
          <h2 className="text-base font-semibold">Resources</h2>
          {[...rest, ...(more ? hidden : [])].map((resource) => (
            <ResourceRow key={resource.id} resource={resource} />
          ))}
          {hidden.length > 0 ? (
            <button
              type="button"
              className="self-start text-sm font-medium text-accent-text hover:underline"
              onClick={() => setMore(!more)}
            >
              {more ? "Hide" : "Show"} {counted(hidden.length, "hidden resource")}
            </button>
          ) : null}
        </section>
      ) : null}
    </>
  );
}
