// The template editor: files, a build with its log, the resources, publishing. Unsaved changes are
// guarded against leaving the page.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { useParams } from "react-router";

import { ApiError } from "../../api/client";
import { useTemplateRights } from "../../api/permissions";
import { templateVersionByName } from "../../api/queries/templates";
import { ButtonLink } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { useTitle } from "../../ui/title";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { archiveOf } from "./archive";
import { templatePath } from "../../features/template/paths";
import { useTemplate } from "../../features/template/useTemplate";
import { Editor } from "./editor/Editor";

export function EditorPage() {
  const { template, view } = useTemplate();
  const name = useParams()["version"] ?? "";
  useTitle(template?.name ?? "", "Template Editor");
  const versionQuery = useQuery({
    ...templateVersionByName(template?.organization_name ?? "", template?.name ?? "", name),
    enabled: template !== null,
  });
  const files = useQuery({
    ...archiveOf(versionQuery.data?.job.file_id ?? ""),
    enabled: versionQuery.data !== undefined,
  });
  const may = useTemplateRights(template);
  if (!template) return view;
  if (may.update === false)
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title="You can use this template but not change it"
        actions={<ButtonLink to={templatePath(template)}>Back to template</ButtonLink>}
      >
        Contact an administrator of the template.
      </Empty>
    );
  // Once the editor is open, nothing replaces what is being written: neither a failed refresh nor a
  // version renamed elsewhere.
  if (
    versionQuery.isLoadingError &&
    versionQuery.error instanceof ApiError &&
    versionQuery.error.status === 404
  )
    return <NotFoundPage />;
  const failed = versionQuery.isLoadingError
    ? versionQuery.error
    : files.isLoadingError
      ? files.error
      : null;
  if (failed)
    return (
      <Failure
        error={failed}
        retry={() => {
          void versionQuery.refetch();
          void files.refetch();
        }}
      />
    );
  if (!versionQuery.data || !files.data) return <SkeletonRows />;
  return (
    <Editor
      key={versionQuery.data.id}
      template={template}
      base={versionQuery.data}
      files={files.data}
    />
  );
}
