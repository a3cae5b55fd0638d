// Building a workspace with another version of its template.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { templateVersions } from "../../../api/queries/templates";
import type { TemplateVersion, Workspace } from "../../../api/types";
import { Combobox } from "../../../ui/forms/Combobox";
import { Confirm } from "../../../ui/Confirm";
import { Failure } from "../../../ui/Failure";
import { Loading } from "../../../ui/Loading";
import { isStaged } from "../../../features/workspace/offers";
import { ago } from "../../../lib/time";
import { startBuild, useOpenForValues } from "./builds";

export function ChangeVersion({
  workspace,
  onClose,
}: {
  workspace: Workspace;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  const openForValues = useOpenForValues();
  const versionQuery = useQuery(templateVersions(workspace.template_id));
  const versions = versionQuery.data;
  const [chosen, setChosen] = useState(workspace.latest_build.template_version_id);
  return (
    <Confirm
      open
      onClose={onClose}
      danger={false}
      title={`Change the version of ${workspace.name}`}
      confirm="Promote version"
      onConfirm={async () => {
        await openForValues(workspace, chosen, () =>
          startBuild(workspace.id, "start", { template_version_id: chosen }),
        );
        await queries.invalidateQueries({ queryKey: ["workspace"] });
      }}
      extra={
        versions ? (
          <Combobox
            label="Version"
            value={chosen}
            onChange={setChosen}
            options={versions
              .filter((version) => version.job.status === "succeeded" && !version.archived)
              .map((version) => ({
                value: version.id,
                text: version.name,
                hint: hintOf(version, workspace),
              }))}
          />
        ) : versionQuery.isLoadingError ? (
          <Failure
            error={versionQuery.error}
            title="Failed to load the versions"
            retry={() => void versionQuery.refetch()}
          />
        ) : (
          <Loading />
        )
      }
    >
      The workspace is rebuilt with the version you choose. Running processes end.
    </Confirm>
  );
}

/** Markers for active or offered and in use, author and time, and the message. */
function hintOf(version: TemplateVersion, workspace: Workspace): string {
  const word = isStaged(workspace) ? "offered by a rollout, " : "active, ";
  const active = version.id === workspace.template_active_version_id ? word : "";
  const used = version.id === workspace.latest_build.template_version_id ? "in use, " : "";
  const message = version.message ? `: ${version.message}` : "";
  return `${active}${used}by ${version.created_by.username}, ${ago(version.created_at)}${message}`;
}
