// What an organization is called, what its workspaces may share, and its end.
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
        <Notice kind="info" title="You may not change this organization.">
          Its administrators can.
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
            toast.done("Organization settings updated.");
            if (saved.name !== name)
              await navigate(`/organizations/${saved.name}/settings`, { replace: true });
            await queries.invalidateQueries({ queryKey: ["organizations"] });
          }}
        />
        <FirstRoles view={view} />
        <Sharing view={view} />
        {view.may.remove ? (
          <Section
            tone="danger"
            title="Delete"
            description={
              organization.is_default
                ? "This is the default organization: it cannot be deleted."
                : "Its templates, groups, roles and provisioner keys go with it."
            }
            actions={
              <Button
                look="danger"
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
        title={`Delete the organization ${view.name}?`}
        confirm="Delete"
        typed={name}
        typedLabel="Name of the organization to delete"
        onConfirm={async () => {
          await remove(`/api/v2/organizations/${organization.id}`);
          toast.done("Organization deleted");
          await navigate("/organizations");
          await queries.invalidateQueries({ queryKey: ["organizations"] });
        }}
      >
        <p>
          Its templates, groups, custom roles and provisioner keys are gone for good. It is refused
          while there are workspaces in it: delete them first. People keep their accounts.
        </p>
        <p className="text-sm">Address of its pages: {home}</p>
      </Confirm>
    </>
  );
}

function FirstRoles({ view }: { view: OrganizationView }) {
  const { organization } = view;
  const roles = (useQuery(organizationRoles(organization.name)).data ?? []).filter(
    (role) => role.assignable,
  );
  const { value: chosen, choose } = useChoice(organization.default_org_member_roles, {
    send: (next) =>
      patch(`/api/v2/organizations/${organization.id}`, { default_org_member_roles: next }),
    seen: ["organizations"],
    failed: "The roles could not be changed",
  });
  if (roles.length === 0) return null;
  return (
    <Section
      title="Roles of new members"
      description="What somebody who joins is given. Members keep the roles they have."
    >
      <Stack className="gap-3">
        {roles.map((role) => (
          <Checkbox
            key={role.name}
            label={role.display_name || role.name}
            hint={ORGANIZATION_ROLE_HINTS[role.name]}
            checked={chosen.includes(role.name)}
            onChange={(on) =>
              choose(on ? [...chosen, role.name] : chosen.filter((one) => one !== role.name))
            }
          />
        ))}
      </Stack>
    </Section>
  );
}

const WHO = [
  { value: "everyone", text: "Every member", hint: "Owners of workspaces choose with whom." },
  {
    value: "service_accounts",
    text: "Service accounts only",
    hint: "Workspaces of people cannot be shared.",
  },
  { value: "none", text: "Nobody", hint: "What is shared now is taken back." },
] as const;

function Sharing({ view }: { view: OrganizationView }) {
  const { organization } = view;
  const settings = useQuery(sharingSettings(organization.id)).data;
  const queries = useQueryClient();
  const [asked, setAsked] = useState<WorkspaceSharingSettings["shareable_workspace_owners"] | null>(
    null,
  );
  if (!settings) return null;
  const change = async (who: WorkspaceSharingSettings["shareable_workspace_owners"]) => {
    await patch(`/api/v2/organizations/${organization.id}/settings/workspace-sharing`, {
      shareable_workspace_owners: who,
    });
    await queries.invalidateQueries({
      queryKey: ["organizations", organization.id, "workspace-sharing"],
    });
    toast.done("Workspace sharing updated.");
  };
  return (
    <Section
      title="Workspace sharing"
      description={
        settings.sharing_globally_disabled
          ? "The server's settings turn it off for the whole deployment."
          : "Whose workspaces may be shared with others."
      }
    >
      {settings.sharing_globally_disabled ? (
        <p className="text-muted">Nobody can share a workspace.</p>
      ) : (
        <RadioCards
          label="Who may share"
          value={settings.shareable_workspace_owners}
          options={WHO}
          onChange={(value) => {
            const who = value as WorkspaceSharingSettings["shareable_workspace_owners"];
            if (who === "everyone")
              void change(who).catch((error: unknown) =>
                toast.failed("Workspace sharing could not be changed", error),
              );
            else setAsked(who);
          }}
        />
      )}
      <Confirm
        open={asked !== null}
        onClose={() => setAsked(null)}
        title="Restrict workspace sharing?"
        confirm="Restrict"
        onConfirm={() => change(asked ?? "everyone")}
      >
        <p>
          {asked === "none"
            ? "Every workspace of this organization that is shared is taken back from those it was shared with."
            : "Workspaces of people that are shared are taken back from those they were shared with."}{" "}
          This is not undone by allowing it again.
        </p>
      </Confirm>
    </Section>
  );
}
