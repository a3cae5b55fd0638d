// A template: its name, its actions, and the tabs of its pages.
import { useQuery } from "@tanstack/react-query";
import { Copy, Download, EllipsisVertical, Pencil, Plus, Settings, Trash2 } from "lucide-react";
import { useState } from "react";
import { Outlet, useNavigate, useOutletContext } from "react-router";

import { remove, seg } from "../../api/client";
import {
  NO_WORKSPACES,
  useCreationIn,
  useMayCreateWorkspace,
  useTemplateRights,
  type TemplateRights,
} from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import { templateVersion } from "../../api/queries/templates";
import { workspaces } from "../../api/queries/workspaces";
import type { Template, TemplateVersion } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { ButtonLink, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Failure, LoadFailure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Menu, MenuItem, MenuSeparator } from "../../ui/Menu";
import { Notice } from "../../ui/Notice";
import { PageHead } from "../../ui/Page";
import { LinkTabs } from "../../ui/Tabs";
import { toast } from "../../ui/toast";
import { useTemplateHome } from "../../features/template/paths";
import { useTemplate } from "../../features/template/useTemplate";
import { counted, usedBy } from "../../lib/words";

export interface TemplateContext {
  template: Template;
  version: TemplateVersion;
  may: TemplateRights;
}
export const useTemplateContext = () => useOutletContext<TemplateContext>();

export function TemplateLayout() {
  const { template, view } = useTemplate();
  return template ? <Loaded template={template} /> : view;
}

function Loaded({ template }: { template: Template }) {
  const may = useTemplateRights(template);
  const mayCreate = useMayCreateWorkspace(template.organization_id);
  const version = useQuery(templateVersion(template.active_version_id));
  const home = useTemplateHome(template);
  return (
    <>
      <PageHead
        title={template.display_name || template.name}
        crumbs={[["Templates", "/templates"], [template.display_name || template.name]]}
        icon={<Avatar name={template.name} src={template.icon} size="lg" square />}
        badge={template.deprecated ? <Tag tone="warn">Deprecated</Tag> : null}
        description={
          <>
            {template.description ? `${template.description}\u00a0· used` : "Used"} by{" "}
            {usedBy(template.active_user_count)}&nbsp;· updated <Ago at={template.updated_at} /> by{" "}
            {template.created_by_name}
          </>
        }
        actions={
          <>
            {template.deprecated ? null : mayCreate === false ? (
              <span className="text-sm text-muted">{NO_WORKSPACES}</span>
            ) : mayCreate ? (
              <ButtonLink
                variant="primary"
                icon={<Plus />}
                to={`${home}/workspace`}
                data-testid="create-workspace-button"
              >
                Create workspace
              </ButtonLink>
            ) : null}
            <TemplateMenu template={template} version={version.data} may={may} />
          </>
        }
      />
      {template.deprecated ? (
        <div className="mb-4">
          <Notice kind="warning" title="This template is deprecated">
            {template.deprecation_message}
          </Notice>
        </div>
      ) : null}
      <LinkTabs
        label="Template"
        items={[
          { to: `${home}/docs`, text: "Docs" },
          ...(may.update ? [{ to: `${home}/files`, text: "Source Code" }] : []),
          { to: `${home}/resources`, text: "Resources" },
          { to: `${home}/versions`, text: "Versions" },
          { to: `${home}/embed`, text: "Embed" },
          ...(may.insights ? [{ to: `${home}/insights`, text: "Insights" }] : []),
          ...(may.insights ? [{ to: `${home}/builds`, text: "Builds" }] : []),
          ...(may.update ? [{ to: `${home}/prebuilds`, text: "Prebuilds" }] : []),
        ]}
      />
      <div className="pt-5">
        {version.isLoadingError ? (
          <Failure error={version.error} retry={() => void version.refetch()} />
        ) : version.data ? (
          <Outlet context={{ template, version: version.data, may } satisfies TemplateContext} />
        ) : (
          <SkeletonRows rows={2} />
        )}
      </div>
    </>
  );
}

function TemplateMenu({
  template,
  version,
  may,
}: {
  template: Template;
  version: TemplateVersion | undefined;
  may: TemplateContext["may"];
}) {
  const navigate = useNavigate();
  const making =
    useCreationIn(
      "templates",
      (useQuery(organizations).data ?? []).map((item) => item.id),
    ) ?? [];
  const [deleting, setDeleting] = useState(false);
  const home = useTemplateHome(template);
  const users = useQuery({
    ...workspaces(
      `template:${template.name} organization:${template.organization_name}`, // templates may be namesakes
      1,
      1,
    ),
    enabled: deleting,
    refetchInterval: false,
  });
  const usage = users.data?.count ?? 0;
  if (!may.update && !may.remove) return null;
  return (
    <>
      <Menu
        trigger={
          <IconButton label="Open template menu" variant="secondary">
            <EllipsisVertical />
          </IconButton>
        }
      >
        {version && may.update ? (
          <MenuItem icon={<Pencil />} to={`${home}/versions/${seg(version.name)}/edit`}>
            Edit files
          </MenuItem>
        ) : null}
        {may.update ? (
          <MenuItem icon={<Settings />} to={`${home}/settings`}>
            Settings
          </MenuItem>
        ) : null}
        {making.length > 0 && may.update ? (
          <MenuItem icon={<Copy />} to={`/templates/new?fromTemplate=${template.id}`}>
            Duplicate…
          </MenuItem>
        ) : null}
        {version && may.update ? (
          <MenuItem icon={<Download />} href={`/api/v2/files/${version.job.file_id}`} download>
            Export as TAR
          </MenuItem>
        ) : null}
        {version && may.update ? (
          <MenuItem
            icon={<Download />}
            href={`/api/v2/files/${version.job.file_id}?format=zip`}
            download
          >
            Export as ZIP
          </MenuItem>
        ) : null}
        {may.remove ? (
          <>
            <MenuSeparator />
            <MenuItem icon={<Trash2 />} danger onSelect={() => setDeleting(true)}>
              Delete…
            </MenuItem>
          </>
        ) : null}
      </Menu>
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${template.name}?`}
        confirm="Delete template"
        typed={template.name}
        typedLabel="Template name"
        onConfirm={async () => {
          await remove(`/api/v2/templates/${template.id}`);
          toast.done(`Template "${template.name}" deleted successfully.`);
          await navigate("/templates");
        }}
      >
        <p>Its versions and settings are deleted. This cannot be undone.</p>
        <LoadFailure query={users} title="It is unknown whether workspaces use this template" />
        {usage > 0 ? (
          <Notice
            kind="warning"
            title={`${counted(usage, "workspace uses", "workspaces use")} this template`}
          >
            Delete these workspaces first.
          </Notice>
        ) : null}
      </Confirm>
    </>
  );
}
