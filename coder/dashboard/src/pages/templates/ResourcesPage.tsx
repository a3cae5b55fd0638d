import { useQuery } from "@tanstack/react-query";

import { versionResources } from "../../api/queries/templates";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { ResourceRow } from "../../features/workspace/ResourceRow";
import { useTemplateContext } from "./TemplateLayout";

/** The resources of a running workspace of the active version. */
export function ResourcesPage() {
  const { template, version } = useTemplateContext();
  useTitle(`${template.name} · Template`);
  const answer = useQuery(versionResources(version.id));
  if (answer.isPending) return <SkeletonRows rows={2} />;
  if (answer.isLoadingError)
    return <Failure error={answer.error} retry={() => void answer.refetch()} />;
  const running = answer.data.filter((resource) => resource.workspace_transition === "start");
  if (running.length === 0) return <Empty title="No resources" />;
  return (
    <Stack className="gap-2">
      <p className="text-muted">Resources of a workspace with the active version:</p>
      {running.map((resource) => (
        <div key={resource.id}>
          <ResourceRow resource={resource} />
          {(resource.agents ?? []).map((agent) => (
            <p key={agent.id} className="ml-6 border-l border-line py-2 pl-4 text-sm">
              <span className="font-medium">Agent {agent.name}</span>{" "}
              <span className="text-muted">
                {agent.operating_system} · {agent.architecture}
                {agent.apps.length > 0
                  ? ` · ${agent.apps.map((app) => app.display_name || app.slug).join(", ")}`
                  : ""}
              </span>
            </p>
          ))}
        </div>
      ))}
    </Stack>
  );
}
