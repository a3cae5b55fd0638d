// Automatic start and stop of a workspace.
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { get, put } from "../../../api/client";
import { templateById } from "../../../api/queries/templates";
import type { Template, Workspace } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { cx } from "../../../ui/cx";
import { Combobox } from "../../../ui/forms/Combobox";
import { FormProblems, useSettingsForm } from "../../../ui/forms/conflict";
import { Failure } from "../../../ui/Failure";
import { Switch } from "../../../ui/forms/Toggle";
import { TextField } from "../../../ui/forms/Field";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { DAYS, readCron, timezones, writeCron } from "../../../lib/cron";
import { useSettingsWorkspace } from "./SettingsLayout";

const HOUR_MS = 3_600_000;
const WORKDAYS = [1, 2, 3, 4, 5];
const NAMES = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

export function SchedulePage() {
  const workspace = useSettingsWorkspace();
  useTitle(workspace.name, "Schedule");
  const template = useQuery(templateById(workspace.template_id));
  return (
    <>
      <PageHead
        title="Workspace schedule"
        description="When this workspace starts and stops automatically."
      />
      {workspace.latest_build.has_external_agent ? (
        <Notice kind="info" title="This machine is managed outside Coder">
          Coder cannot start or stop it, so it has no schedule.
        </Notice>
      ) : null}
      {template.isPending ? <SkeletonRows rows={2} /> : null}
      {template.isError ? (
        <Failure error={template.error} retry={() => void template.refetch()} />
      ) : null}
      {template.data && !workspace.latest_build.has_external_agent ? (
        <ScheduleForm workspace={workspace} template={template.data} />
      ) : null}
    </>
  );
}

function fields(workspace: Workspace, template: Template) {
  const set = workspace.autostart_schedule ? readCron(workspace.autostart_schedule) : null;
  return {
    autostart: Boolean(workspace.autostart_schedule),
    time: set?.time ?? "09:30",
    days: set?.days ?? (WORKDAYS as readonly number[]),
    timezone: set?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    autostop: Boolean(workspace.ttl_ms),
    hours: String(
      workspace.ttl_ms
        ? workspace.ttl_ms / HOUR_MS
        : Math.max(1, template.default_ttl_ms / HOUR_MS || 8),
    ),
  };
}

function ScheduleForm({ workspace, template }: { workspace: Workspace; template: Template }) {
  const queries = useQueryClient();
  const set = workspace.autostart_schedule ? readCron(workspace.autostart_schedule) : null;
  const pick = (current: Workspace) => fields(current, template);
  const start = pick(workspace);
  const form = useSettingsForm(
    () => get<Workspace>(`/api/v2/workspaces/${workspace.id}`),
    pick,
    start,
    async (values) => {
      if (template.allow_user_autostart)
        await put(
          `/api/v2/workspaces/${workspace.id}/autostart`,
          values.autostart ? { schedule: writeCron(values) } : {},
        );
      if (template.allow_user_autostop)
        await put(`/api/v2/workspaces/${workspace.id}/ttl`, {
          ttl_ms: values.autostop ? Math.round(Number(values.hours) * HOUR_MS) : null,
        });
      await queries.invalidateQueries({ queryKey: ["workspace"] });
      toast.done(
        "Schedule saved.",
        values.autostop !== start.autostop || values.hours !== start.hours
          ? "Autostop changes apply from the next start."
          : "",
      );
    },
    (values) => ({
      ...(values.autostart && values.days.length === 0 ? { days: "Choose at least one day." } : {}),
      ...(values.autostop && !(Number(values.hours) > 0)
        ? { hours: "Enter a number of hours." }
        : {}),
    }),
  );
  const { values } = form;
  const allowed = template.autostart_requirement.days_of_week;
  const toggle = (day: number) =>
    form.set(
      "days",
      values.days.includes(day)
        ? values.days.filter((other) => other !== day)
        : [...values.days, day],
    );
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <FormProblems form={form} />
        {workspace.autostart_schedule && !set ? (
          <Notice kind="warning" title="This schedule was set elsewhere and cannot be displayed">
            {workspace.autostart_schedule}. Saving replaces it.
          </Notice>
        ) : null}
        <Section title="Autostart" description="Start the workspace automatically before you work.">
          <Stack>
            {template.allow_user_autostart ? null : (
              <Notice kind="info" title="The template does not allow autostart" />
            )}
            <Switch
              label="Enable autostart"
              checked={values.autostart}
              disabled={!template.allow_user_autostart}
              onChange={(on) => form.set("autostart", on)}
              testId="enable-autostart"
            />
            <fieldset className="flex flex-col gap-1.5" disabled={!values.autostart}>
              <legend className="mb-1 font-medium">Days</legend>
              <div className="flex flex-wrap gap-1.5">
                {DAYS.map((name, day) => (
                  <label
                    key={name}
                    className={cx(
                      "rounded-md border border-line-strong px-2.5 py-1 text-sm font-medium",
                      "has-checked:border-accent has-checked:bg-accent-soft",
                      "has-checked:text-accent-text has-disabled:opacity-50",
                      "has-focus-visible:outline-2",
                    )}
                  >
                    <input
                      type="checkbox"
                      className="sr-only"
                      checked={values.days.includes(day)}
                      disabled={!allowed.includes(NAMES[day] ?? "")}
                      onChange={() => toggle(day)}
                    />
                    {name.slice(0, 3)}
                    <span className="sr-only">{name.slice(3)}</span>
                  </label>
                ))}
              </div>
              {form.problem("days") ? (
                <p className="text-sm text-bad">{form.problem("days")}</p>
              ) : null}
            </fieldset>
            <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
              <TextField
                label="Start time"
                type="time"
                required
                value={values.time}
                disabled={!values.autostart}
                onChange={(value) => form.set("time", value)}
              />
              <Combobox
                label="Timezone"
                value={values.timezone}
                disabled={!values.autostart}
                onChange={(value) => form.set("timezone", value)}
                options={timezones().map((name) => ({ value: name, text: name }))}
              />
            </div>
          </Stack>
        </Section>
        <Section
          title="Autostop"
          description="Stop the workspace automatically after this time without activity."
        >
          <Stack>
            {template.allow_user_autostop ? null : (
              <Notice kind="info" title="The template controls autostop" />
            )}
            <Switch
              label="Enable autostop"
              checked={values.autostop}
              disabled={!template.allow_user_autostop}
              onChange={(on) => form.set("autostop", on)}
              testId="enable-autostop"
            />
            <div className="max-w-48">
              <TextField
                label="Time until shutdown (hours)"
                type="number"
                min={0.1}
                step="any"
                value={values.hours}
                disabled={!values.autostop || !template.allow_user_autostop}
                problem={form.problem("hours")}
                onChange={(value) => form.set("hours", value)}
              />
            </div>
          </Stack>
        </Section>
        <div className="flex justify-end">
          <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
            Save
          </Button>
        </div>
      </Stack>
    </form>
  );
}
