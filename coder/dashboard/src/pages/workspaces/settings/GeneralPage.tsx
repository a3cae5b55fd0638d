// A workspace's name and its automatic updates.
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "react-router";

import { get, patch, put } from "../../../api/client";
import type { Workspace } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { FormProblems, useSettingsForm } from "../../../ui/forms/conflict";
import { SelectField, TextField } from "../../../ui/forms/Field";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { useSettingsWorkspace } from "./SettingsLayout";

const fields = (workspace: Workspace) => ({
  name: workspace.name,
  automatic_updates: workspace.automatic_updates as string,
});

export function GeneralPage() {
  const workspace = useSettingsWorkspace();
  useTitle(workspace.name, "Settings");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const form = useSettingsForm(
    () => get<Workspace>(`/api/v2/workspaces/${workspace.id}`),
    fields,
    fields(workspace),
    async (values) => {
      if (values.name !== workspace.name)
        await patch(`/api/v2/workspaces/${workspace.id}`, { name: values.name });
      if (values.automatic_updates !== workspace.automatic_updates)
        await put(`/api/v2/workspaces/${workspace.id}/autoupdates`, {
          automatic_updates: values.automatic_updates,
        });
      await queries.invalidateQueries({ queryKey: ["workspaces"] });
      toast.done(`Workspace ${values.name} updated successfully.`);
      await navigate(`/@${workspace.owner_name}/${values.name}`);
    },
  );
  const forced = workspace.template_require_active_version;
  return (
    <>
      <PageHead title="Workspace settings" />
      <form onSubmit={form.submit}>
        <Section title="General">
          <Stack>
            <FormProblems form={form} />
            <TextField
              label="Workspace name"
              required
              value={form.values.name}
              disabled={!workspace.allow_renames}
              problem={form.problem("name")}
              onChange={(value) => form.set("name", value)}
              hint={
                workspace.allow_renames
                  ? "Renaming can lose data if the template names its disks after the workspace."
                  : "Renaming is disabled on this deployment because it can lose data."
              }
            />
            <SelectField
              label="Automatic updates"
              value={form.values.automatic_updates}
              disabled={forced}
              onChange={(value) => form.set("automatic_updates", value)}
              options={[
                ["never", "Never: update manually"],
                ["always", "Always: use the active version at each start"],
              ]}
              hint={
                forced
                  ? "The template requires its active version at each start."
                  : "Template version used at each start."
              }
            />
            <div className="flex justify-end">
              <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
                Save
              </Button>
            </div>
          </Stack>
        </Section>
      </form>
    </>
  );
}
