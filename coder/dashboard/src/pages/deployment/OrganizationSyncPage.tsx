// Organization membership from claims of the identity provider.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { get, patch } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { organizationSync } from "../../api/queries/deployment";
import { claimValues } from "../../api/queries/organizations";
import { organizations } from "../../api/queries/session";
import type { OrganizationSyncSettings } from "../../api/types";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Failure, LoadFailure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { ExportPolicy } from "../../features/organization/ExportPolicy";
import { MappingEditor, readMapping } from "../../features/organization/MappingEditor";
import { PermissionDenied } from "../../ui/PermissionDenied";

export function OrganizationSyncPage() {
  useTitle("Organization IdP Sync");
  const may = usePermissions();
  const settings = useQuery({ ...organizationSync, enabled: may.viewOrganizationIdpSync });
  if (may.known && !may.viewOrganizationIdpSync)
    return <PermissionDenied subject="the organization sync" />;
  return (
    <>
      <PageHead
        title="Organization IdP sync"
        description="Organization membership follows the identity provider’s claims at each sign-in."
        actions={
          settings.data ? (
            <ExportPolicy name="organizations_policy.json" policy={settings.data} />
          ) : null
        }
      />
      {settings.isLoadingError ? (
        <Failure error={settings.error} retry={() => void settings.refetch()} />
      ) : settings.data ? (
        <SyncForm settings={settings.data} editable={may.editOrganizationIdpSync} />
      ) : (
        <SkeletonRows rows={3} />
      )}
    </>
  );
}

const SETTINGS = "/api/v2/settings/idpsync/organization";
const fields = (settings: OrganizationSyncSettings) => ({
  field: settings.field,
  mapping: readMapping(settings.mapping),
  organization_assign_default: settings.organization_assign_default,
});

function SyncForm({
  settings,
  editable,
}: {
  settings: OrganizationSyncSettings;
  editable: boolean;
}) {
  const queries = useQueryClient();
  const organizationList = useQuery(organizations);
  const orgs = organizationList.data ?? [];
  const form = useSettingsForm(
    () => get<OrganizationSyncSettings>(SETTINGS),
    fields,
    fields(settings),
    async (values) => {
      await patch(SETTINGS, values);
      toast.done("Organization sync settings updated.");
      await queries.invalidateQueries({ queryKey: organizationSync.queryKey });
    },
  );
  const [asking, setAsking] = useState(false);
  const claimChoices = useQuery(claimValues(null, form.values.field)).data ?? [];
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Stack>
        <FormProblems form={form} />
        <Section title="Source">
          <Stack>
            <TextField
              label="Organization sync field"
              autoComplete="off"
              readOnly={!editable}
              hint="The claim with the organization names. Leave empty to turn sync off."
              value={values.field}
              problem={problem("field")}
              onChange={(value) => set("field", value)}
            />
            <Switch
              label="Assign default organization"
              hint="All users also join the default organization."
              disabled={!editable}
              checked={values.organization_assign_default}
              onChange={(on) =>
                on ? form.save({ organization_assign_default: true }) : setAsking(true)
              }
            />
          </Stack>
        </Section>
        <Section
          title="Mappings"
          description="Names without a mapping are ignored. Users leave an organization when the claim no longer contains its name."
        >
          <LoadFailure query={organizationList} title="Failed to load the organizations" />
          <MappingEditor
            noun="organization"
            testId="idp-org"
            nameLabel="IdP organization name"
            targetLabel="Coder organization"
            readOnly={!editable}
            suggestions={claimChoices}
            value={values.mapping}
            onChange={(mapping) => form.save({ mapping })}
            targets={orgs.map((entry) => ({
              value: entry.id,
              text: entry.display_name || entry.name,
            }))}
          />
        </Section>
        {editable ? (
          <div className="flex justify-end">
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Save
            </Button>
          </div>
        ) : (
          <p className="text-sm text-muted">You can view these settings but not change them.</p>
        )}
      </Stack>
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title="Disable default organization assignment?"
        confirm="Confirm"
        onConfirm={async () => form.save({ organization_assign_default: false })}
      >
        <p>
          Users whose claims contain no mapped organization then belong to none after they sign in.
        </p>
      </Confirm>
    </form>
  );
}
