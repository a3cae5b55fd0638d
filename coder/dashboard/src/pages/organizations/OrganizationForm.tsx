// The fields of an organization.
import type { ReactNode } from "react";

import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { TextArea, TextField } from "../../ui/forms/Field";
import { IconField } from "../../ui/forms/IconField";
import { Stack } from "../../ui/Page";

export interface OrganizationValues {
  name: string;
  display_name: string;
  description: string;
  icon: string;
}

const pick = ({ name, display_name, description, icon }: OrganizationValues) => ({
  name,
  display_name,
  description,
  icon,
});

/** `load` fetches an organization that already exists. */
export function OrganizationForm({
  start,
  load = null,
  send,
  actions,
}: {
  start: OrganizationValues;
  load?: (() => Promise<OrganizationValues>) | null;
  send: (values: OrganizationValues) => Promise<unknown>;
  actions?: ReactNode;
}) {
  const form = useSettingsForm(load, pick, start, send);
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <FormProblems form={form} />
        <Section title="Info" description="Name and appearance.">
          <Stack>
            <TextField
              label="Slug"
              autoFocus={load === null}
              required
              autoComplete="off"
              hint="Letters, digits and hyphens. Used in URLs and by the CLI."
              value={values.name}
              problem={problem("name")}
              onChange={(value) => set("name", value)}
            />
            <TextField
              label="Display name"
              autoComplete="off"
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
        <div className="flex justify-end gap-2">
          {actions}
          <Button
            type="submit"
            variant="primary"
            busy={form.busy}
            disabled={load !== null && !form.dirty}
          >
            Save
          </Button>
        </div>
      </Stack>
    </form>
  );
}
