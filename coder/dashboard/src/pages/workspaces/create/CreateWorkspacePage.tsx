// A new workspace: name, version, owner, preset, parameters. The address can set every value, and
// `mode=auto` creates the workspace after one confirmation.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { Navigate, useSearchParams } from "react-router";

import { NO_WORKSPACES, useMayCreateWorkspace } from "../../../api/permissions";
import { buildParameters, workspaces } from "../../../api/queries/workspaces";
import type { Template } from "../../../api/types";
import { ButtonLink } from "../../../ui/Button";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { Loading, SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { Narrow, PageHead } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { templatePath } from "../../../features/template/paths";
import { useTemplate } from "../../../features/template/useTemplate";
import { CreateForm } from "./CreateForm";

export function CreateWorkspacePage() {
  useTitle("Create workspace");
  const { template, view } = useTemplate();
  const [params] = useSearchParams();
  const match = params.get("match");
  const mayCreate = useMayCreateWorkspace(template?.organization_id);
  const existing = useQuery({
    ...workspaces(match ?? "", 1, 1),
    enabled: params.get("mode") === "auto" && Boolean(match),
    refetchInterval: false,
  });
  if (!template) return view;
  if (match && params.get("mode") === "auto") {
    if (existing.isPending) return <Loading />;
    if (existing.isLoadingError)
      return (
        <Narrow>
          <PageHead
            title="Invalid match value"
            crumbs={[
              ["Templates", "/templates"],
              [template.display_name || template.name, templatePath(template)],
              ["New workspace"],
            ]}
          />
          <Failure error={existing.error} retry={() => void existing.refetch()} />
        </Narrow>
      );
    const existingWorkspace = existing.data?.workspaces[0];
    if (existingWorkspace)
      return (
        <Navigate to={`/@${existingWorkspace.owner_name}/${existingWorkspace.name}`} replace />
      );
  }
  if (mayCreate === false) {
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title={NO_WORKSPACES}
        actions={<ButtonLink to={templatePath(template)}>Back to template</ButtonLink>}
      >
        Ask an administrator of the organization for this permission.
      </Empty>
    );
  }
  if (template.deprecated) {
    return (
      <Narrow>
        <PageHead
          title="New workspace"
          crumbs={[
            ["Templates", "/templates"],
            [template.display_name || template.name, templatePath(template)],
            ["New workspace"],
          ]}
        />
        <Notice kind="warning" title={`${template.display_name || template.name} is deprecated`}>
          {template.deprecation_message}
        </Notice>
      </Narrow>
    );
  }
  return <Prepared template={template} />;
}

/** A duplicate starts with the values of the original. */
function Prepared({ template }: { template: Template }) {
  const [params] = useSearchParams();
  const original = params.get("like");
  const values = useQuery({ ...buildParameters(original ?? ""), enabled: original !== null });
  if (original !== null && values.isPending) return <SkeletonRows rows={3} />;
  // Without them it would silently not be a duplicate.
  if (original !== null && values.isLoadingError)
    return (
      <Failure
        title="Failed to load the parameters of the original workspace"
        error={values.error}
        retry={() => void values.refetch()}
      />
    );
  const copied = Object.fromEntries((values.data ?? []).map((item) => [item.name, item.value]));
  return <CreateForm template={template} start={{ ...copied, ...fromAddress(params) }} />;
}

function fromAddress(params: URLSearchParams): Record<string, string> {
  return Object.fromEntries(
    [...params]
      .filter(([name]) => name.startsWith("param."))
      .map(([name, value]) => [name.slice("param.".length), value]),
  );
}
