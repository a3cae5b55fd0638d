// The fields of a group, for creating and for editing one.
import type { ReactNode } from "react";

import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { TextField } from "../../ui/forms/Field";
import { IconField } from "../../ui/forms/IconField";
import { Stack } from "../../ui/Page";

export interface GroupValues {
  name: string;
  display_name: string;
  avatar_url: string;
  quota_allowance: string;
}

/** `load` fetches a group that already exists. */
export function GroupForm({
  start,
  load = null,
  send,
  actions,
  everyone = false,
}: {
  start: GroupValues;
  load?: (() => Promise<GroupValues>) | null;
  send: (
    values: Omit<GroupValues, "quota_allowance"> & { quota_allowance: number },
  ) => Promise<unknown>;
  actions?: ReactNode;
  everyone?: boolean;
}) {
  const form = useSettingsForm(
    load,
    (current) => current,
    start,
    (values) => send({ ...values, quota_allowance: Number(values.quota_allowance) }),
    (values) =>
      /^\d+$/.test(values.quota_allowance.trim())
        ? {}
        : { quota_allowance: "Enter a whole number, or 0 for none." },
  );
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <FormProblems form={form} />
        <Section title="General">
          <Stack>
            {everyone ? null : (
              <>
                <TextField
                  label="Name"
                  autoFocus={load === null}
                  required
                  autoComplete="off"
                  hint="Letters, digits and hyphens; used by the CLI."
                  value={values.name}
                  problem={problem("name")}
                  onChange={(value) => set("name", value)}
                />
                <TextField
                  label="Display name"
                  autoComplete="off"
                  hint="Shown in place of the name (optional)."
                  value={values.display_name}
                  problem={problem("display_name")}
                  onChange={(value) => set("display_name", value)}
                />
                <IconField
                  label="Avatar URL"
                  value={values.avatar_url}
                  problem={problem("avatar_url")}
                  onChange={(value) => set("avatar_url", value)}
                />
              </>
            )}
            <TextField
              label="Quota allowance"
              inputMode="numeric"
              className="max-w-40"
              hint={
                "Credits that each member gets through this group. Running workspaces consume their daily cost; " +
                "allowances of several groups add up."
              }
              value={values.quota_allowance}
              problem={problem("quota_allowance")}
              onChange={(value) => set("quota_allowance", value)}
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
