// A new workspace: name, version, owner, preset, parameters. The address can set every value, and
// `mode=auto` creates the workspace after one confirmation.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole } from "lucide-react";
import { useSearchParams } from "react-router";

import { NO_WORKSPACES, useMayCreateWorkspace } from "../../../api/permissions";
import { buildParameters } from "../../../api/queries/workspaces";
import type { Template } from "../../../api/types";
import { ButtonLink } from "../../../ui/Button";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
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
  const mayCreate = useMayCreateWorkspace(template?.organization_id);
  if (!template) return view;
  // A link that may open an existing workspace needs no right to create one.
  const opens = params.get("mode") === "auto" && Boolean(params.get("match"));
  if (mayCreate === false && !opens) {
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
  if (template.deprecated && !opens) {
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
