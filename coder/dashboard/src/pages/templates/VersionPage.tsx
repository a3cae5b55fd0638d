// A version of a template: its files, its import, and promoting it.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Ban } from "lucide-react";
import { useParams } from "react-router";

import { ApiError, patch, seg } from "../../api/client";
import { useMayCreateWorkspace, useTemplateRights } from "../../api/permissions";
import { templateVersionByName } from "../../api/queries/templates";
import type { Template, TemplateVersion } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { StatusText, Tag } from "../../ui/Badge";
import { Button, ButtonLink } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { WaitingNotice } from "../../features/provisioner/WaitingNotice";
import { FirstImportErrors } from "../../features/build/FirstErrors";
import { ImportLog } from "./ImportLog";
import { SourceFiles } from "./FilesPage";
import { templatePath } from "../../features/template/paths";
import { useTemplate } from "../../features/template/useTemplate";
import { JOB_TONES, JOB_WORDS, stateOf } from "../../features/provisioner/job-states";

const POLL_MS = 2000;
const isImporting = ({ job }: TemplateVersion) =>
  ["pending", "running", "canceling"].includes(job.status);

export function VersionPage() {
  const { template, view } = useTemplate();
  return template ? <Loaded template={template} /> : view;
}

function Loaded({ template }: { template: Template }) {
  const name = useParams()["version"] ?? "";
  useTitle(name, template.name);
  const may = useTemplateRights(template);
  const mayCreate = useMayCreateWorkspace(template.organization_id);
  const query = useQuery({
    ...templateVersionByName(template.organization_name, template.name, name),
    refetchInterval: ({ state }) => (state.data && isImporting(state.data) ? POLL_MS : false),
  });
  if (query.isPending) return <SkeletonRows />;
  if (query.error instanceof ApiError && query.error.status === 404) return <NotFoundPage />;
  if (query.isLoadingError)
    return <Failure error={query.error} retry={() => void query.refetch()} />;
  const version = query.data;
  const state = stateOf(version.job);
  const home = templatePath(template);
  const active = version.id === template.active_version_id;
  return (
    <>
      <PageHead
        title={version.name}
        crumbs={[
          ["Templates", "/templates"],
          [template.display_name || template.name, home],
          ["Versions", `${home}/versions`],
          [version.name],
        ]}
        badge={
          <>
            {active ? <Tag tone="good">Active</Tag> : null}
            {version.archived ? <Tag>Archived</Tag> : null}
            {version.job.status === "succeeded" ? null : (
              <StatusText tone={JOB_TONES[state]}>{JOB_WORDS[state]}</StatusText>
            )}
          </>
        }
        description={
          <>
            by {version.created_by.username}, <Ago at={version.created_at} />
            {version.message ? `: ${version.message}` : ""}
          </>
        }
        actions={
          <>
            {may.update ? (
              <CancelImport version={version} onDone={() => void query.refetch()} />
            ) : null}
            {mayCreate && version.job.status === "succeeded" ? (
              <ButtonLink to={`${home}/workspace?version=${version.id}`}>
                Create workspace
              </ButtonLink>
            ) : null}
            {may.update ? (
              <ButtonLink variant="primary" to={`${home}/versions/${seg(version.name)}/edit`}>
                Edit
              </ButtonLink>
            ) : null}
          </>
        }
      />
      {version.job.status === "pending" ? (
        <div className="mb-4">
          <WaitingNotice organization={template.organization_id} job={version.job} />
        </div>
      ) : null}
      {version.job.error ? (
        <div className="mb-4">
          <Notice
            kind={state === "canceled" ? "warning" : "error"}
            title={
              state === "canceled" ? "The import was canceled" : "The version could not be imported"
            }
          >
            <p>{version.job.error}</p>
            <FirstImportErrors version={version.id} />
          </Notice>
        </div>
      ) : null}
      {version.job.status === "succeeded" ? null : (
        <div className="mb-4">
          <ImportLog key={version.id} version={version.id} />
        </div>
      )}
      {may.update === false ? (
        <p className="text-muted">You need update permission on the template to view its files.</p>
      ) : null}
      {may.update ? <SourceFiles template={template} version={version} editable={false} /> : null}
    </>
  );
}

/** A user who opens the page during the import can cancel it at any point. */
function CancelImport({ version, onDone }: { version: TemplateVersion; onDone: () => void }) {
  const cancel = useMutation({
    mutationFn: () => patch(`/api/v2/templateversions/${version.id}/cancel`),
    onError: (error) => toast.failed("Failed to cancel the import", error),
    onSettled: onDone,
  });
  return isImporting(version) ? (
    <Button
      icon={<Ban />}
      disabled={version.job.status === "canceling"}
      busy={cancel.isPending}
      onClick={() => cancel.mutate()}
    >
      Cancel import
    </Button>
  ) : null;
}
