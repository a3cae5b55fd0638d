// Attaching an existing machine: the choice of a template, and how to create one. The command
// itself is on the page of the workspace created here.
import { useQuery } from "@tanstack/react-query";
import { LockKeyhole, Plus, Server } from "lucide-react";

import {
  NO_WORKSPACES_ANYWHERE,
  useMayCreateWorkspace,
  usePermissions,
} from "../../api/permissions";
import { templates } from "../../api/queries/templates";
import type { Template } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { ButtonLink } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Narrow, PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import {
  EXTERNAL_TEMPLATES,
  EXTERNAL_STARTER_PATH,
  templatePath,
} from "../../features/template/paths";

const TITLE = "Attach a machine";

export function AttachPage() {
  useTitle(TITLE);
  const may = usePermissions();
  const list = useQuery(templates(EXTERNAL_TEMPLATES));
  if (may.known && !may.createOwnWorkspace && !may.createWorkspaceForAny) {
    return (
      <Empty
        level={1}
        icon={LockKeyhole}
        title={NO_WORKSPACES_ANYWHERE}
        actions={<ButtonLink to="/workspaces">View workspaces</ButtonLink>}
      >
        Ask an administrator of the organization for this permission.
      </Empty>
    );
  }
  const usable = list.data?.filter((template) => !template.deprecated);
  return (
    <Narrow>
      <PageHead
        title={TITLE}
        crumbs={[["Workspaces", "/workspaces"], [TITLE]]}
        description="Turn any server, VM or pod into a workspace with one command."
        actions={<ButtonLink to="/workspaces/fleet">View the fleet</ButtonLink>}
      />
      {list.isPending ? <SkeletonRows rows={2} /> : null}
      {list.isLoadingError ? (
        <Failure error={list.error} retry={() => void list.refetch()} />
      ) : null}
      {usable?.length === 0 ? (
        <Section title="No template for external machines yet">
          {may.createAnyTemplate ? (
            <Stack>
              <p>
                External machines need a template. Create one from the starter template; then you
                name the machine.
              </p>
              <div>
                <ButtonLink variant="primary" to={EXTERNAL_STARTER_PATH} icon={<Plus />}>
                  Use starter template
                </ButtonLink>
              </div>
            </Stack>
          ) : may.known ? (
            <p>
              A template administrator has to create one from the starter template “Externally
              Managed Workspace”.
            </p>
          ) : null}
        </Section>
      ) : null}
      {usable && usable.length > 0 ? (
        <Section
          title="Choose a template"
          description="Next, name the workspace. Its page shows the command to run, and updates when the machine connects."
        >
          <ul
            aria-label="Templates for external machines"
            className="flex flex-col divide-y divide-line"
          >
            {usable.map((template) => (
              <Attachable key={template.id} template={template} />
            ))}
          </ul>
          {may.createAnyTemplate ? (
            <p className="mt-3 border-t border-line pt-3 text-sm text-muted">
              Another kind of machine?{" "}
              <ButtonLink size="sm" variant="quiet" to={EXTERNAL_STARTER_PATH} icon={<Server />}>
                Use starter template
              </ButtonLink>
            </p>
          ) : null}
        </Section>
      ) : null}
    </Narrow>
  );
}

function Attachable({ template }: { template: Template }) {
  const mayCreate = useMayCreateWorkspace(template.organization_id);
  const name = template.display_name || template.name;
  return (
    <li className="flex flex-wrap items-center gap-3 py-2.5 first:pt-0 last:pb-0">
      <Avatar name={template.name} src={template.icon} square />
      <div className="min-w-0 flex-1 basis-48">
        <p className="font-medium [overflow-wrap:anywhere]">{name}</p>
        <p className="text-sm text-muted [overflow-wrap:anywhere]">{template.description}</p>
      </div>
      {mayCreate === false ? (
        <span className="text-sm text-muted">
          You cannot create workspaces in{" "}
          {template.organization_display_name || template.organization_name}
        </span>
      ) : null}
      {mayCreate ? (
        <ButtonLink
          variant="primary"
          size="sm"
          to={`${templatePath(template)}/workspace`}
          aria-label={`Attach with ${name}`}
        >
          Attach
        </ButtonLink>
      ) : null}
    </li>
  );
}
