// An organization's name, its workspace sharing, and its deletion.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useNavigate } from "react-router";

import { get, patch, remove } from "../../api/client";
import { organizationRoles } from "../../api/queries/organizations";
import { sharingSettings } from "../../api/queries/workspaces";
import type { Organization, WorkspaceSharingSettings } from "../../api/types";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { LoadFailure } from "../../ui/Failure";
import { Checkbox } from "../../ui/forms/Toggle";
import { RadioCards } from "../../ui/forms/RadioCards";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { useChoice } from "../../ui/forms/choice";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { ORGANIZATION_ROLE_HINTS } from "../../features/person/roles";
import { OrganizationForm } from "./OrganizationForm";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";

export function OrganizationSettingsPage() {
  const view = useOrganization();
  useTitle("Settings", view?.name ?? "");
  if (!view) return null;
  if (!view.may.update)
    return (
      <>
        <PageHead title="Settings" />
        <Notice kind="info" title="You need update permission to change this organization">
          Contact an administrator of the organization.
        </Notice>
      </>
    );
  return <Settings key={view.organization.id} view={view} />;
}

function Settings({ view }: { view: OrganizationView }) {
  const { organization, home } = view;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const { name, display_name, description, icon } = organization;
  return (
    <>
      <PageHead title="Settings" />
      <Stack>
        <OrganizationForm
          start={{ name, display_name, description, icon }}
          load={() => get<Organization>(`/api/v2/organizations/${organization.id}`)}
          send={async (values) => {
            const saved = await patch<Organization>(
              `/api/v2/organizations/${organization.id}`,
              values,
            );
            toast.done("Organization settings updated successfully.");
            if (saved.name !== name)
              await navigate(`/organizations/${saved.name}/settings`, { replace: true });
            await queries.invalidateQueries({ queryKey: ["organizations"] });
          }}
        />
        <DefaultRoles view={view} />
        <Sharing view={view} />
        {view.may.remove ? (
          <Section
            tone="danger"
            title="Delete"
            description={
              organization.is_default
                ? "The default organization cannot be deleted."
                : "Deletes its templates, groups, roles and provisioner keys as well."
            }
            actions={
              <Button
                variant="danger"
                disabled={organization.is_default}
                onClick={() => setDeleting(true)}
              >
                Delete this organization
              </Button>
            }
          />
        ) : null}
      </Stack>
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete organization ${view.name}?`}
        confirm="Delete"
        typed={name}
        typedLabel="Name of the organization to delete"
        onConfirm={async () => {
          await remove(`/api/v2/organizations/${organization.id}`);
          toast.done("Organization deleted successfully.");
          await navigate("/organizations");
          await queries.invalidateQueries({ queryKey: ["organizations"] });
        }}
      >
        <p>
          Its templates, groups, custom roles and provisioner keys are deleted permanently. Delete
          its workspaces first: an organization with workspaces cannot be deleted. User accounts are
          kept.
        </p>
        <p className="text-sm">URL of its pages: {home}</p>
      </Confirm>
    </>
  );
}

function DefaultRoles({ view }: { view: OrganizationView }) {
  const { organization } = view;
  const list = useQuery(organizationRoles(organization.name));
  const roles = (list.data ?? []).filter((role) => role.assignable);
  const { value: chosen, choose } = useChoice(organization.default_org_member_roles, {
    send: (next) =>
      patch(`/api/v2/organizations/${organization.id}`, { default_org_member_roles: next }),
    seen: ["organizations"],
    failed: "Failed to update the roles",
  });
  if (roles.length === 0)
    return <LoadFailure query={list} title="Failed to load the roles of new members" />;
  return (
    <Section
      title="Default roles of new members"
      description="Assigned to users who join. Current members keep their roles."
    >
      <Stack className="gap-3">
        {roles.map((role) => (
          <Checkbox
            key={role.name}
            label={role.display_name || role.name}
            hint={ORGANIZATION_ROLE_HINTS[role.name]}
            checked={chosen.includes(role.name)}
            onChange={(on) =>
              choose(on ? [...chosen, role.name] : chosen.filter((other) => other !== role.name))
            }
          />
        ))}
      </Stack>
    </Section>
  );
}

const SHARING_CHOICES = [
  { value: "everyone", text: "All members", hint: "Workspace owners choose whom to share with." },
  {
    value: "service_accounts",
    text: "Service accounts only",
    hint: "Workspaces of users cannot be shared.",
  },
  { value: "none", text: "Disabled", hint: "Existing shares are removed." },
] as const;

function Sharing({ view }: { view: OrganizationView }) {
  const { organization } = view;
  const answer = useQuery(sharingSettings(organization.id));
  const settings = answer.data;
  const queries = useQueryClient();
  const [pending, setPending] = useState<
    WorkspaceSharingSettings["shareable_workspace_owners"] | null
  >(null);
  if (!settings)
    return <LoadFailure query={answer} title="Failed to load the setting of workspace sharing" />;
  const change = async (owners: WorkspaceSharingSettings["shareable_workspace_owners"]) => {
    await patch(`/api/v2/organizations/${organization.id}/settings/workspace-sharing`, {
      shareable_workspace_owners: owners,
    });
    await queries.invalidateQueries({
      queryKey: ["organizations", organization.id, "workspace-sharing"],
    });
    toast.done("Workspace sharing updated successfully.");
  };
  return (
    <Section
      title="Workspace sharing"
      description={
        settings.sharing_globally_disabled
          ? "Disabled for the whole deployment by the server’s settings."
          : "Choose which owners can share their workspaces."
      }
    >
      {settings.sharing_globally_disabled ? (
        <p className="text-muted">Workspace sharing is disabled.</p>
      ) : (
        <RadioCards
          label="Sharing allowed for"
          value={settings.shareable_workspace_owners}
          options={SHARING_CHOICES}
          onChange={(value) => {
            const owners = value as WorkspaceSharingSettings["shareable_workspace_owners"];
            if (owners === "everyone")
              void change(owners).catch((error: unknown) =>
                toast.failed("Failed to update workspace sharing", error),
              );
            else setPending(owners);
          }}
        />
      )}
      <Confirm
        open={pending !== null}
        onClose={() => setPending(null)}
        title="Restrict workspace sharing?"
        confirm="Restrict"
        onConfirm={() => change(pending ?? "everyone")}
      >
        <p>
          {pending === "none"
            ? "All shares of workspaces in this organization are removed."
            : "All shares of users’ workspaces in this organization are removed."}{" "}
          Allowing sharing again does not restore them.
        </p>
      </Confirm>
    </Section>
  );
}
