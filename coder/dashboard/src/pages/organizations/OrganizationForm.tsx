// The fields of an organization.
import type { ReactNode } from "react";

import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { TextArea, TextField } from "../../ui/Field";
import { useForm } from "../../ui/form";
import { Stack } from "../../ui/Page";

export interface OrganizationValues {
  name: string;
  display_name: string;
  description: string;
  icon: string;
}

export function OrganizationForm({ start, send, actions }: { start: OrganizationValues; send: (values: OrganizationValues) => Promise<unknown>; actions?: ReactNode }) {
  const form = useForm(start, send);
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Stack>
        {form.error ? <Failure error={form.error} /> : null}
        <Section title="Info" description="How people find it.">
          <Stack>
            <TextField label="Slug" required autoComplete="off" hint="Letters, digits and hyphens. Part of addresses and of the command line." value={values.name} problem={problem("name")} onChange={(value) => set("name", value)} />
            <TextField label="Display name" autoComplete="off" value={values.display_name} problem={problem("display_name")} onChange={(value) => set("display_name", value)} />
            <TextArea label="Description" rows={2} value={values.description} problem={problem("description")} onChange={(value) => set("description", value)} />
            <TextField label="Icon" hint="The address of a picture, such as /emojis/1f33b.png." value={values.icon} problem={problem("icon")} onChange={(value) => set("icon", value)} />
          </Stack>
        </Section>
        <div className="flex justify-end gap-2">{actions}<Button type="submit" look="primary" busy={form.busy}>Save</Button></div>
      </Stack>
    </form>
  );
}
