// Schedule of a template: when its workspaces stop, become dormant and are deleted.
import { get } from "../../../api/client";
import type { Template } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { FormProblems, useSettingsForm } from "../../../ui/forms/conflict";
import { Checkbox } from "../../../ui/forms/Toggle";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { PageHead, Stack, TextLink } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import {
  CUSTOM,
  daysOf,
  inOrder,
  STOP_CHOICES,
  stopChoice,
  WEEK,
  withDay,
  type Days,
} from "./days";
import { useSaveTemplate } from "./save";
import { useSettingsTemplate } from "./SettingsLayout";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function fields(template: Template) {
  const stopDays = inOrder(template.autostop_requirement.days_of_week);
  return {
    ttl: String(template.default_ttl_ms / HOUR_MS),
    bump: String(template.activity_bump_ms / HOUR_MS),
    stop: stopChoice(stopDays),
    stopDays,
    weeks: String(Math.max(1, template.autostop_requirement.weeks)),
    startDays: inOrder(template.autostart_requirement.days_of_week),
    autostart: template.allow_user_autostart,
    autostop: template.allow_user_autostop,
    failure: String(template.failure_ttl_ms / DAY_MS),
    dormant: String(template.time_til_dormant_ms / DAY_MS),
    remove: String(template.time_til_dormant_autodelete_ms / DAY_MS),
  };
}

export function TemplateSchedulePage() {
  const template = useSettingsTemplate();
  useTitle(template.name, "Schedule");
  const save = useSaveTemplate(template);
  const start = fields(template);
  const form = useSettingsForm(
    () => get<Template>(`/api/v2/templates/${template.id}`),
    fields,
    start,
    (values) =>
      save({
        default_ttl_ms: Math.round(Number(values.ttl) * HOUR_MS),
        activity_bump_ms: Math.round(Number(values.bump) * HOUR_MS),
        autostop_requirement: { days_of_week: values.stopDays, weeks: Number(values.weeks) || 1 },
        autostart_requirement: { days_of_week: values.startDays },
        allow_user_autostart: values.autostart,
        allow_user_autostop: values.autostop,
        failure_ttl_ms: Math.round(Number(values.failure) * DAY_MS),
        time_til_dormant_ms: Math.round(Number(values.dormant) * DAY_MS),
        time_til_dormant_autodelete_ms: Math.round(Number(values.remove) * DAY_MS),
      }),
    (values) => ({
      ...Object.fromEntries(
        (["ttl", "bump", "failure", "dormant", "remove"] as const)
          .filter((name) => !(Number(values[name]) >= 0))
          .map((name) => [name, "Enter a number, or 0 for never."]),
      ),
      ...(values.stop === CUSTOM && values.stopDays.length === 0
        ? { stop: "Choose a day or Off." }
        : {}),
    }),
  );
  const { values, set, problem } = form;
  const number = (
    name: "ttl" | "bump" | "failure" | "dormant" | "remove",
    label: string,
    hint: string,
  ) => (
    <TextField
      label={label}
      hint={hint}
      type="number"
      min={0}
      step="any"
      required
      value={values[name]}
      problem={problem(name)}
      onChange={(value) => set(name, value)}
    />
  );
  return (
    <>
      <PageHead title="Template schedule" />
      <form onSubmit={form.submit}>
        <Stack>
          <FormProblems form={form} />
          <Section
            title="Autostop"
            description={
              <>
                Stop idle workspaces automatically.{" "}
                <TextLink to="/workspaces/idle">View idle workspaces</TextLink>
              </>
            }
          >
            <Stack>
              {number(
                "ttl",
                "Default autostop (hours)",
                "Time after which a workspace stops; 0 means never.",
              )}
              {number(
                "bump",
                "Activity bump (hours)",
                "Activity extends a workspace’s deadline by this time; 0 disables it.",
              )}
              <SelectField
                label="Days with required stop"
                hint="Workspaces stop on these days during their owner’s quiet hours."
                value={values.stop}
                problem={problem("stop")}
                options={STOP_CHOICES}
                onChange={(value) => {
                  set("stop", value);
                  set("stopDays", daysOf(value, values.stopDays));
                }}
              />
              {values.stop === CUSTOM ? (
                <DayBoxes
                  label="Days on which workspaces stop"
                  days={values.stopDays}
                  onChange={(days) => set("stopDays", days)}
                />
              ) : null}
              {values.stop !== "off" && values.stop !== "daily" ? (
                <TextField
                  label="Weeks between required stops"
                  type="number"
                  min={1}
                  max={16}
                  value={values.weeks}
                  onChange={(value) => set("weeks", value)}
                />
              ) : null}
              <Checkbox
                label="Allow users to customize autostop"
                checked={values.autostop}
                onChange={(on) => set("autostop", on)}
              />
            </Stack>
          </Section>
          <Section
            title="Autostart"
            description="Days on which workspaces may start automatically."
          >
            <Stack>
              <Checkbox
                label="Allow users to schedule autostart"
                checked={values.autostart}
                onChange={(on) => set("autostart", on)}
              />
              <DayBoxes
                label="Allowed days"
                days={values.startDays}
                disabled={!values.autostart}
                onChange={(days) => set("startDays", days)}
              />
            </Stack>
          </Section>
          <Section
            title="Dormancy"
            description="Handling of unused workspaces. 0 disables a rule."
            tone="danger"
          >
            <Stack>
              {number(
                "failure",
                "Failure cleanup (days)",
                "Stops workspaces whose build failed, after this time.",
              )}
              {number(
                "dormant",
                "Dormancy threshold (days)",
                "Stops workspaces that are unused for this long and marks them dormant.",
              )}
              {number(
                "remove",
                "Dormancy auto-deletion (days)",
                "Deletes dormant workspaces and their data after this time.",
              )}
            </Stack>
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

function DayBoxes({
  label,
  days,
  disabled = false,
  onChange,
}: {
  label: string;
  days: Days;
  disabled?: boolean;
  onChange: (days: string[]) => void;
}) {
  return (
    <fieldset className="flex flex-wrap gap-4" disabled={disabled}>
      <legend className="mb-1.5 font-medium">{label}</legend>
      {WEEK.map((day) => (
        <Checkbox
          key={day}
          label={`${day[0]?.toUpperCase()}${day.slice(1)}`}
          checked={days.includes(day)}
          disabled={disabled}
          onChange={(on) => onChange(withDay(days, day, on))}
        />
      ))}
    </fieldset>
  );
}
