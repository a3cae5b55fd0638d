// The form that creates a task: prompt, template, preset.
import { useQuery } from "@tanstack/react-query";
import { ArrowUp } from "lucide-react";
import { useNavigate } from "react-router";

import { post } from "../../api/client";
import { versionPresets } from "../../api/queries/templates";
import type { CreateTaskRequest, Task, Template } from "../../api/types";
import { Button } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Failure, LoadFailure } from "../../ui/Failure";
import { SelectField, TextArea } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { keyOf } from "../../ui/keys";
import { ExternalAuthStep, useExternalAuth } from "../../features/template/ExternalAuthStep";
import { taskAddress } from "./task-status";

export function NewTask({ templates }: { templates: readonly Template[] }) {
  const navigate = useNavigate();
  const form = useForm(
    { input: "", template: templates[0]?.id ?? "", preset: "" },
    async (values) => {
      const chosen = templates.find((item) => item.id === values.template);
      if (!chosen) return;
      const request: CreateTaskRequest = {
        template_version_id: chosen.active_version_id,
        input: values.input,
        ...(values.preset ? { template_version_preset_id: values.preset } : {}),
      };
      const created = await post<Task>("/api/v2/tasks/me", request);
      await navigate(taskAddress(created));
    },
    (values) => (values.input.trim() === "" ? { input: "Enter a prompt." } : {}),
  );
  const { values, set, problem } = form;
  const version = templates.find((item) => item.id === values.template)?.active_version_id ?? "";
  const presetList = useQuery({ ...versionPresets(version), enabled: version !== "" });
  const presets = presetList.data ?? [];
  const { missing, answer: links } = useExternalAuth(version, "me");
  return (
    <Card className="p-4">
      <form onSubmit={form.submit} className="flex flex-col gap-3" aria-label="New task">
        {form.error ? <Failure error={form.error} /> : null}
        <LoadFailure query={presetList} title="Failed to load the presets of the template" />
        <TextArea
          label="Prompt your AI agent to start a task"
          rows={3}
          placeholder="Fix the flaky test in the payment service and open a pull request…"
          value={values.input}
          problem={problem("input")}
          onChange={(value) => set("input", value)}
          onKeyDown={(event) => {
            if (keyOf(event) === "Enter" && (event.ctrlKey || event.metaKey)) form.submit();
          }}
        />
        <LoadFailure query={links} title="Failed to load the external accounts of the template" />
        {missing.length > 0 ? <ExternalAuthStep version={version} user="me" name={null} /> : null}
        <div className="flex flex-wrap items-end gap-3">
          <div className="min-w-48 flex-1 sm:max-w-64">
            <SelectField
              label="Template"
              value={values.template}
              onChange={(value) => {
                set("template", value);
                set("preset", "");
              }}
              options={templates.map((item) => [item.id, item.display_name || item.name] as const)}
            />
          </div>
          {presets.length > 0 ? (
            <div className="min-w-40">
              <SelectField
                label="Preset"
                value={values.preset}
                onChange={(value) => set("preset", value)}
                options={[["", "None"], ...presets.map((item) => [item.ID, item.Name] as const)]}
              />
            </div>
          ) : null}
          <Button
            type="submit"
            variant="primary"
            className="ml-auto"
            icon={<ArrowUp />}
            busy={form.busy}
            disabled={missing.length > 0}
          >
            Run task
          </Button>
        </div>
      </form>
    </Card>
  );
}
