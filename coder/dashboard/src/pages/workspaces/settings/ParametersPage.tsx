// A workspace's parameters: a change takes effect with the next build, which starts at once.
import { useQuery } from "@tanstack/react-query";
import { SlidersHorizontal } from "lucide-react";
import { useState } from "react";
import { useNavigate, useSearchParams } from "react-router";

import { get } from "../../../api/client";
import { buildParameters } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceBuildParameter } from "../../../api/types";
import { Button, ButtonLink } from "../../../ui/Button";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { ConflictError, ConflictNotice, useConflict } from "../../../ui/forms/conflict";
import { useForm } from "../../../ui/forms/form";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import {
  buildValues,
  FIX_PARAMETERS,
  hasErrors,
  useDynamicParameters,
} from "../../../features/parameter/dynamic-parameters";
import { ParameterField } from "../../../features/parameter/ParameterField";
import { startBuild } from "../builds/builds";
import { workspacePath } from "../paths";
import { useSettingsWorkspace } from "./SettingsLayout";

export function ParametersPage() {
  const workspace = useSettingsWorkspace();
  useTitle(workspace.name, "Parameters");
  return (
    <>
      <PageHead
        title="Workspace parameters"
        description="Values chosen when the workspace was created. Changing them rebuilds the workspace."
      />
      <Loaded key={workspace.id} workspace={workspace} />
    </>
  );
}

function Loaded({ workspace }: { workspace: Workspace }) {
  const [build] = useState(workspace.latest_build.id); // a build that starts meanwhile must not discard what was typed
  const now = useQuery(buildParameters(build));
  return (
    <>
      {now.isPending ? <SkeletonRows rows={3} /> : null}
      {now.isError ? <Failure error={now.error} retry={() => void now.refetch()} /> : null}
      {now.data ? <ParametersForm workspace={workspace} initial={valuesOf(now.data)} /> : null}
    </>
  );
}

type Values = Record<string, string>;

const valuesOf = (parameters: readonly WorkspaceBuildParameter[]): Values =>
  Object.fromEntries(parameters.map((item) => [item.name, item.value]));

/** The values of the newest build: another tab may have started one since the page was opened. */
async function newestValues(workspace: string): Promise<Values> {
  const { latest_build: build } = await get<Workspace>(`/api/v2/workspaces/${workspace}`);
  return valuesOf(
    await get<WorkspaceBuildParameter[]>(`/api/v2/workspacebuilds/${build.id}/parameters`),
  );
}

function ParametersForm({ workspace, initial }: { workspace: Workspace; initial: Values }) {
  const navigate = useNavigate();
  const [start] = useState(initial); // nor must a refetch of the same values
  const build = workspace.latest_build;
  const version = useSearchParams()[0].get("templateVersionId") ?? build.template_version_id;
  const dynamic = useDynamicParameters(version, workspace.owner_id, start);
  const running = build.status === "running";
  const invalid = hasErrors(dynamic);
  const conflict = useConflict(
    () => newestValues(workspace.id),
    (values) => values,
    start,
  );
  const form = useForm<Values>(
    {},
    conflict.guard(async () => {
      await startBuild(workspace.id, "start", {
        template_version_id: version,
        rich_parameter_values: buildValues(dynamic),
      });
      await navigate(workspacePath(workspace));
    }),
  );
  if (dynamic.parameters === null) return <SkeletonRows rows={3} />;
  if (dynamic.parameters.length === 0)
    return <Empty icon={SlidersHorizontal} title="This template has no parameters" />;
  const typed = {
    ...form,
    values: Object.fromEntries(
      dynamic.parameters.map((parameter) => [parameter.name, dynamic.valueOf(parameter)]),
    ),
    reset: dynamic.choose,
    set: () => undefined,
  };
  return (
    <form onSubmit={form.submit}>
      <Stack className="gap-6">
        {version !== build.template_version_id ? (
          <Notice kind="info" title="The new template version requires these values">
            Enter the missing values. The workspace is then built with that version.
          </Notice>
        ) : null}
        <ConflictNotice conflict={conflict} form={typed} />
        {form.error && !(form.error instanceof ConflictError) ? (
          <Failure error={form.error} />
        ) : null}
        {dynamic.diagnostics.map((item, index) => (
          <Notice
            key={index}
            kind={item.severity === "error" ? "error" : "warning"}
            title={item.summary}
          >
            {item.detail}
          </Notice>
        ))}
        {dynamic.parameters.map((parameter) => (
          <ParameterField
            key={parameter.name}
            parameter={parameter}
            value={dynamic.valueOf(parameter)}
            onChange={(value) => dynamic.choose({ [parameter.name]: value })}
            locked={
              parameter.mutable || !(parameter.name in start)
                ? ""
                : "This parameter cannot be changed after creation."
            }
          />
        ))}
        <div className="flex flex-wrap items-center justify-end gap-2">
          {build.has_external_agent ? (
            <p className="mr-auto text-sm text-muted">
              The machine is managed outside Coder: a build only changes its record here.
            </p>
          ) : null}
          {invalid ? (
            <p id="update-blocked" className="mr-auto text-sm text-muted">
              {FIX_PARAMETERS}
            </p>
          ) : null}
          <ButtonLink to={workspacePath(workspace)}>Cancel</ButtonLink>
          <Button
            type="submit"
            variant="primary"
            busy={form.busy}
            disabled={invalid}
            aria-describedby={invalid ? "update-blocked" : undefined}
          >
            {running ? "Update and restart" : "Update and start"}
          </Button>
        </div>
      </Stack>
    </form>
  );
}
