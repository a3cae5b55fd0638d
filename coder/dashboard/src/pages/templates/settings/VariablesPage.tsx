// Values of a template's variables: a change creates a new version, which becomes active after its
// import.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Variable } from "lucide-react";
import { useState } from "react";

import { get, patch } from "../../../api/client";
import { versionVariables } from "../../../api/queries/templates";
import type { Template, TemplateVersion, TemplateVersionVariable } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { useConflict } from "../../../ui/forms/conflict";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { useForm } from "../../../ui/forms/form";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { createVersion, waitForImport } from "../archive";
import { ImportLog } from "../ImportLog";
import { givenValues, startValues, VariablesForm } from "../VariablesForm";
import { useSettingsTemplate } from "./SettingsLayout";

export function TemplateVariablesPage() {
  const template = useSettingsTemplate();
  useTitle(template.name, "Template variables");
  return (
    <>
      <PageHead
        title="Template variables"
        description="Values of the template’s Terraform variables, for all of its workspaces."
      />
      <Loaded key={template.id} template={template} />
    </>
  );
}

function Loaded({ template }: { template: Template }) {
  const [version, take] = useState(template.active_version_id); // a version that becomes active meanwhile must not discard what was typed
  const variables = useQuery(versionVariables(version));
  return (
    <>
      {variables.isPending ? <SkeletonRows rows={2} /> : null}
      {variables.isError ? (
        <Failure error={variables.error} retry={() => void variables.refetch()} />
      ) : null}
      {variables.data?.length === 0 ? (
        <Empty icon={Variable} title="This template has no variables" />
      ) : null}
      {variables.data && variables.data.length > 0 ? (
        <Values
          key={version}
          template={template}
          active={version}
          take={take}
          variables={variables.data}
        />
      ) : null}
    </>
  );
}

interface ValuesProps {
  template: Template;
  /** The version that the values belong to. */
  active: string;
  /** Start over from another version. */
  take: (version: string) => void;
  variables: readonly TemplateVersionVariable[];
}

function Values({ template, active, take, variables }: ValuesProps) {
  const queries = useQueryClient();
  const [building, setBuilding] = useState("");
  // Another active version means that another user made a change, whatever its variables are.
  const pick = (current: Template) => ({ version: current.active_version_id });
  const load = () => get<Template>(`/api/v2/templates/${template.id}`);
  const conflict = useConflict(load, pick, { version: active });
  const form = useForm<Record<string, string>>(
    startValues(variables),
    conflict.guard(async (values: Record<string, string>) => {
      // Saved on top of another version: the user's values with that version's files.
      const { job } = await get<TemplateVersion>(
        `/api/v2/templateversions/${pick(await load()).version}`,
      );
      const created = await createVersion(template.organization_id, {
        template_id: template.id,
        file_id: job.file_id,
        tags: job.tags as Record<string, string>,
        user_variable_values: givenValues(values),
      });
      setBuilding(created.id);
      const done = await waitForImport(created.id);
      if (done.job.status !== "succeeded")
        throw new Error(done.job.error || "The version could not be imported.");
      await patch(`/api/v2/templates/${template.id}/versions`, { id: created.id });
      await queries.invalidateQueries({ queryKey: ["template"] });
      take(created.id);
      toast.done("Template variables updated successfully.", "A new version is active.");
    }),
  );
  return (
    <form onSubmit={form.submit}>
      <Stack>
        {conflict.theirs ? (
          <Notice
            kind="warning"
            title="Another version became active while you were editing"
            actions={
              <>
                <Button
                  size="sm"
                  onClick={() => {
                    conflict.overwrite();
                    form.submit();
                  }}
                >
                  Save anyway
                </Button>
                <Button size="sm" onClick={() => take(conflict.theirs?.version ?? active)}>
                  Discard my changes
                </Button>
              </>
            }
          >
            Your changes have not been saved yet.
          </Notice>
        ) : form.error ? (
          <Failure error={form.error} />
        ) : null}
        <Section title="Variables">
          <VariablesForm variables={variables} values={form.values} onChange={form.set} />
        </Section>
        {building ? <ImportLog key={building} version={building} /> : null}
        <div className="flex justify-end">
          <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
            Save as new version
          </Button>
        </div>
      </Stack>
    </form>
  );
}
