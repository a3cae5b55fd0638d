// One version of a template: its files, its import, and promoting it.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";

import { ApiError, seg } from "../../api/client";
import { templateChecks, useChecks } from "../../api/permissions";
import { templateVersionByName } from "../../api/queries/templates";
import type { Template } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { StatusText, Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { NotFoundPage } from "../errors/NotFoundPage";
import { FirstImportErrors } from "../workspace/builds/FirstErrors";
import { SourceFiles } from "./FilesPage";
import { templatePath } from "./paths";
import { useTemplate } from "./useTemplate";
import { JOB_TONES } from "../provisioners/job-states";

export function VersionPage() {
  const { template, view } = useTemplate();
  return template ? <Loaded template={template} /> : view;
}

function Loaded({ template }: { template: Template }) {
  const name = useParams()["version"] ?? "";
  useTitle(name, template.name);
  const may = useChecks(["template", template.id], templateChecks(template.id, template.organization_id));
  const found = useQuery(templateVersionByName(template.organization_name, template.name, name));
  if (found.isPending) return <SkeletonRows />;
  if (found.isError) return found.error instanceof ApiError && found.error.status === 404 ? <NotFoundPage /> : <Failure error={found.error} retry={() => void found.refetch()} />;
  const version = found.data;
  const home = templatePath(template);
  const active = version.id === template.active_version_id;
  return (
    <>
      <PageHead title={version.name} crumbs={[["Templates", "/templates"], [template.display_name || template.name, home], ["Versions", `${home}/versions`], [version.name]]}
        badge={<>{active ? <Tag tone="good">Active</Tag> : null}{version.archived ? <Tag>Archived</Tag> : null}{version.job.status === "succeeded" ? null : <StatusText tone={JOB_TONES[version.job.status]}>{version.job.status}</StatusText>}</>}
        description={<>by {version.created_by.username}, <Ago at={version.created_at} />{version.message ? `: ${version.message}` : ""}</>}
        actions={<>{may.createWorkspace !== false && version.job.status === "succeeded" ? <ButtonLink to={`${home}/workspace?version=${version.id}`}>Create workspace</ButtonLink> : null}{may.update ? <ButtonLink look="primary" to={`${home}/versions/${seg(version.name)}/edit`}>Edit</ButtonLink> : null}</>} />
      {version.job.error ? <div className="mb-4"><Notice kind="error" title="This version could not be imported."><p>{version.job.error}</p><FirstImportErrors version={version.id} /></Notice></div> : null}
      {may.update === false ? <p className="text-muted">Its files are for those who may change the template.</p> : null}
      {may.update ? <SourceFiles template={template} version={version} editable={false} /> : null}
    </>
  );
}
