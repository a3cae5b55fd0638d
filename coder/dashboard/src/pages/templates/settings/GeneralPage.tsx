// A template's name and the options of its workspaces.
import { useNavigate } from "react-router";

import { get } from "../../../api/client";
import type { Template } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { FormProblems, useSettingsForm } from "../../../ui/forms/conflict";
import { Checkbox } from "../../../ui/forms/Toggle";
import { SelectField, TextArea, TextField } from "../../../ui/forms/Field";
import { IconField } from "../../../ui/forms/IconField";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { templatePath } from "../../../features/template/paths";
import { useSaveTemplate } from "./save";
import { useSettingsTemplate } from "./SettingsLayout";

function fields(template: Template) {
  const {
    name,
    display_name,
    description,
    icon,
    deprecation_message,
    require_active_version,
    allow_user_cancel_workspace_jobs,
    use_classic_parameter_flow,
  } = template;
  return {
    name,
    display_name,
    description,
    icon,
    deprecation_message,
    require_active_version,
    allow_user_cancel_workspace_jobs,
    use_classic_parameter_flow,
    max_port_share_level: template.max_port_share_level as string,
    cors_behavior: template.cors_behavior as string,
  };
}

export function TemplateGeneralPage() {
  const template = useSettingsTemplate();
  useTitle(template.name, "General Settings");
  const save = useSaveTemplate(template);
  const navigate = useNavigate();
  const start = fields(template);
  const form = useSettingsForm(
    () => get<Template>(`/api/v2/templates/${template.id}`),
    fields,
    start,
    async (values) => {
      await save(values);
      if (values.name !== template.name)
        await navigate(`${templatePath({ ...template, name: values.name })}/settings`, {
          replace: true,
        });
    },
  );
  const { values, set, problem } = form;
  return (
    <>
      <PageHead title="General settings" />
      <form onSubmit={form.submit}>
        <Stack>
          <FormProblems form={form} />
          <Section title="General info" description="Name and appearance.">
            <Stack>
              <TextField
                label="Name"
                required
                value={values.name}
                problem={problem("name")}
                onChange={(value) => set("name", value)}
              />
              <TextField
                label="Display name"
                value={values.display_name}
                problem={problem("display_name")}
                onChange={(value) => set("display_name", value)}
              />
              <TextArea
                label="Description"
                rows={2}
                value={values.description}
                problem={problem("description")}
                onChange={(value) => set("description", value)}
              />
              <IconField
                value={values.icon}
                problem={problem("icon")}
                onChange={(value) => set("icon", value)}
              />
            </Stack>
          </Section>
          <Section title="Operations" description="Options of the template’s workspaces.">
            <Stack>
              <Checkbox
                label="Allow users to cancel in-progress workspace jobs"
                hint="Canceled builds may leave resources behind."
                checked={values.allow_user_cancel_workspace_jobs}
                onChange={(on) => set("allow_user_cancel_workspace_jobs", on)}
              />
              <Checkbox
                label="Require workspaces to use the active version"
                hint="Workspaces update at each start. Template admins are exempt."
                id="require_active_version"
                checked={values.require_active_version}
                onChange={(on) => set("require_active_version", on)}
              />
              <Checkbox
                label="Use the classic form for parameters"
                hint="Parameters do not depend on each other’s values."
                checked={values.use_classic_parameter_flow}
                onChange={(on) => set("use_classic_parameter_flow", on)}
              />
              <SelectField
                label="Maximum port sharing level"
                value={values.max_port_share_level}
                onChange={(value) => set("max_port_share_level", value)}
                options={[
                  ["owner", "Owner only"],
                  ["organization", "Organization"],
                  ["authenticated", "Authenticated users"],
                  ["public", "Public"],
                ]}
              />
              <SelectField
                label="CORS behavior of shared applications"
                value={values.cors_behavior}
                onChange={(value) => set("cors_behavior", value)}
                options={[
                  ["simple", "Simple (handled by the deployment)"],
                  ["passthru", "Passthru (handled by the application)"],
                ]}
              />
            </Stack>
          </Section>
          <Section
            title="Deprecation"
            description="Existing workspaces of a deprecated template keep working; new ones cannot be created."
          >
            <TextField
              label="Deprecation message"
              hint="Tell users what to use instead. Leave empty if the template is not deprecated."
              value={values.deprecation_message}
              problem={problem("deprecation_message")}
              onChange={(value) => set("deprecation_message", value)}
            />
          </Section>
          <div className="flex justify-end">
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Save
            </Button>
          </div>
        </Stack>
      </form>
    </>
  );
}
