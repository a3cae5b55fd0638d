// Group and role sync of an organization from claims of the identity provider.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useSearchParams } from "react-router";

import { get, patch } from "../../api/client";
import {
  claimValues,
  groupSync,
  organizationRoles,
  roleSync,
} from "../../api/queries/organizations";
import { groupsOf } from "../../api/queries/people";
import type { GroupSyncSettings, RoleSyncSettings } from "../../api/types";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Failure, LoadFailure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { ExportPolicy } from "../../features/organization/ExportPolicy";
import { MappingEditor, readMapping } from "../../features/organization/MappingEditor";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";

export function IdpSyncPage() {
  const view = useOrganization();
  useTitle("IdP Sync", view?.name ?? "");
  const [params, setParams] = useSearchParams();
  const tab = params.get("tab") === "roles" ? "roles" : "groups";
  const groups = useQuery({
    ...groupSync(view?.organization.name ?? ""),
    enabled: view?.may.viewSync === true,
  });
  const roles = useQuery({
    ...roleSync(view?.organization.name ?? ""),
    enabled: view?.may.viewSync === true,
  });
  if (!view?.known) return null;
  if (!view.may.viewSync)
    return <PermissionDenied subject="the sync settings of this organization" />;
  const failed = [groups, roles].find((query) => query.isLoadingError); // a failed refresh keeps what was typed
  return (
    <>
      <PageHead
        title="IdP sync"
        description="Groups and roles follow the identity provider’s claims at each sign-in."
        actions={
          groups.data && roles.data ? (
            <ExportPolicy
              name={`${view.organization.name}_${tab}-policy.json`}
              policy={tab === "groups" ? groups.data : roles.data}
            />
          ) : null
        }
      />
      {failed?.error ? (
        <Failure
          error={failed.error}
          retry={() => {
            void groups.refetch();
            void roles.refetch();
          }}
        />
      ) : !groups.data || !roles.data ? (
        <SkeletonRows rows={3} />
      ) : (
        <Tabs
          label="Sync settings"
          value={tab}
          onChange={(next) => setParams({ tab: next }, { replace: true })}
          items={[
            { value: "groups", text: "Group sync settings" },
            { value: "roles", text: "Role sync settings" },
          ]}
        >
          <TabPanel value="groups" className="pt-4">
            <GroupForm view={view} settings={groups.data} />
          </TabPanel>
          <TabPanel value="roles" className="pt-4">
            <RoleForm view={view} settings={roles.data} />
          </TabPanel>
        </Tabs>
      )}
    </>
  );
}

const pathOf = (view: OrganizationView, kind: "groups" | "roles") =>
  `/api/v2/organizations/${view.organization.id}/settings/idpsync/${kind}`;
const groupFields = (settings: GroupSyncSettings) => ({
  field: settings.field,
  mapping: readMapping(settings.mapping),
  regex_filter: settings.regex_filter ?? "",
  auto_create_missing_groups: settings.auto_create_missing_groups,
});
const roleFields = (settings: RoleSyncSettings) => ({
  field: settings.field,
  mapping: readMapping(settings.mapping),
});

function useSave(view: OrganizationView, kind: "groups" | "roles") {
  const queries = useQueryClient();
  return async (body: object) => {
    await patch(pathOf(view, kind), body);
    toast.done(`IdP ${kind === "groups" ? "Group" : "Role"} sync settings updated.`);
    await queries.invalidateQueries({
      queryKey: ["organizations", view.organization.name, "idpsync", kind],
    });
  };
}

function GroupForm({ view, settings }: { view: OrganizationView; settings: GroupSyncSettings }) {
  const save = useSave(view, "groups");
  const groupList = useQuery(groupsOf(view.organization.name));
  const groups = groupList.data ?? [];
  const form = useSettingsForm(
    () => get<GroupSyncSettings>(pathOf(view, "groups")),
    groupFields,
    groupFields(settings),
    (values) => save({ ...values, regex_filter: values.regex_filter || null }),
  );
  const claimChoices = useQuery(claimValues(view.organization.id, form.values.field)).data ?? [];
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <FormProblems form={form} />
        <Section title="Source">
          <Stack>
            <TextField
              label="Group sync field"
              data-testid="sync-field"
              autoComplete="off"
              hint="The claim with the group names, such as groups. Leave empty to turn sync off."
              value={values.field}
              problem={problem("field")}
              onChange={(value) => set("field", value)}
            />
            <TextField
              label="Regex filter"
              autoComplete="off"
              hint="Only names that match are synced. Leave empty to sync all."
              value={values.regex_filter}
              problem={problem("regex_filter")}
              onChange={(value) => set("regex_filter", value)}
            />
            <Switch
              label="Auto create missing groups"
              hint="Creates a group for each name without a mapping."
              checked={values.auto_create_missing_groups}
              onChange={(on) => form.save({ auto_create_missing_groups: on })}
            />
          </Stack>
        </Section>
        <Section
          title="Mappings"
          description="Members are added to the mapped groups instead of a group with the claim’s name."
        >
          <LoadFailure query={groupList} title="Failed to load the groups" />
          <MappingEditor
            noun="group"
            testId="group"
            nameLabel="IdP group name"
            targetLabel="Coder group"
            readOnly={!view.may.editSync}
            suggestions={claimChoices}
            value={values.mapping}
            onChange={(mapping) => form.save({ mapping })}
            targets={groups.map((group) => ({
              value: group.id,
              text: group.display_name || group.name,
            }))}
          />
        </Section>
        {view.may.editSync ? (
          <div className="flex justify-end">
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Save
            </Button>
          </div>
        ) : null}
      </Stack>
    </form>
  );
}

function RoleForm({ view, settings }: { view: OrganizationView; settings: RoleSyncSettings }) {
  const save = useSave(view, "roles");
  const roleList = useQuery(organizationRoles(view.organization.name));
  const roles = roleList.data ?? [];
  const form = useSettingsForm(
    () => get<RoleSyncSettings>(pathOf(view, "roles")),
    roleFields,
    roleFields(settings),
    save,
  );
  const claimChoices = useQuery(claimValues(view.organization.id, form.values.field)).data ?? [];
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <FormProblems form={form} />
        <Section title="Source">
          <TextField
            label="Role sync field"
            autoComplete="off"
            hint="The claim with the role names, such as roles. Leave empty to turn sync off and assign roles by hand."
            value={values.field}
            problem={problem("field")}
            onChange={(value) => set("field", value)}
          />
        </Section>
        <Section
          title="Mappings"
          description="Names without a mapping are ignored. Roles assigned by hand are removed at sign-in."
        >
          <LoadFailure query={roleList} title="Failed to load the roles" />
          <MappingEditor
            noun="role"
            testId="role"
            nameLabel="IdP role name"
            targetLabel="Coder role"
            readOnly={!view.may.editSync}
            suggestions={claimChoices}
            value={values.mapping}
            onChange={(mapping) => form.save({ mapping })}
            targets={roles.map((role) => ({
              value: role.name,
              text: role.display_name || role.name,
            }))}
          />
        </Section>
        {view.may.editSync ? (
          <div className="flex justify-end">
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Save
            </Button>
          </div>
        ) : null}
      </Stack>
    </form>
  );
}
