// The resources of a built version, and the variables of the next build.
import { useQuery } from "@tanstack/react-query";

import { versionResources, versionVariables } from "../../../api/queries/templates";
import type { TemplateVersion } from "../../../api/types";
import { LoadFailure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { Stack } from "../../../ui/Page";
import { ResourceRow } from "../../../features/workspace/ResourceRow";
import { VariablesForm } from "../VariablesForm";

export function Made({ version }: { version: TemplateVersion }) {
  const answer = useQuery({
    ...versionResources(version.id),
    enabled: version.job.status === "succeeded",
  });
  if (version.job.status !== "succeeded")
    return <p className="text-muted">Build the version to see its resources.</p>;
  return (
    <Stack className="gap-2">
      <LoadFailure query={answer} title="Failed to load the resources" />
      {(answer.data ?? [])
        .filter((resource) => resource.workspace_transition === "start")
        .map((resource) => (
          <ResourceRow key={resource.id} resource={resource} />
        ))}
    </Stack>
  );
}

export function Variables({
  version,
  values,
  onChange,
}: {
  version: TemplateVersion;
  values: Record<string, string>;
  onChange: (name: string, value: string) => void;
}) {
  const answer = useQuery({ ...versionVariables(version.id), retry: false });
  if (answer.isPending) return <SkeletonRows rows={1} />;
  if (answer.isLoadingError)
    return <LoadFailure query={answer} title="Failed to load the variables" />;
  const variables = answer.data;
  if (variables.length === 0) return <p className="text-muted">This version has no variables.</p>;
  return (
    <div className="max-w-xl">
      <p className="mb-3 text-sm text-muted">The next build uses these values.</p>
      <VariablesForm variables={variables} values={values} onChange={onChange} />
    </div>
  );
}
