// The templates from which users can create workspaces.
import { useQuery } from "@tanstack/react-query";
import { LayoutTemplate, Plus } from "lucide-react";

import { ApiError } from "../../api/client";
import { NO_WORKSPACES, useMayCreateWorkspace, usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import { templates } from "../../api/queries/templates";
import type { Template } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { duration } from "../../lib/time";
import { useTitle } from "../../ui/title";
import { templatePath } from "../../features/template/paths";
import { usedBy } from "../../lib/words";
import { Hint } from "../../ui/Hint";

const PRESETS = [
  ["All templates", "deprecated:false"],
  ["My templates", "author:me"],
  ["Deprecated templates", "deprecated:true"],
] as const;
const USUAL = "deprecated:false";

function buildTime(template: Template): string {
  const stats = template.build_time_stats as { start?: { P50?: number | null } } | null;
  const median = stats?.start?.P50;
  return median ? duration(median) : "-";
}

const COLUMNS: Column<Template>[] = [
  {
    id: "name",
    header: "Name",
    width: "40%",
    sort: (row) => row.display_name || row.name,
    cell: (template) => (
      <div className="flex items-center gap-3">
        <Avatar name={template.name} src={template.icon} square />
        <div className="min-w-0">
          <span className="flex items-center gap-2">
            <TextLink to={templatePath(template)} className="text-text [overflow-wrap:anywhere]">
              {template.display_name || template.name}
            </TextLink>
            {template.deprecated ? (
              <Tag tone="warn" title={template.deprecation_message}>
                Deprecated
              </Tag>
            ) : null}
          </span>
          <p className="text-sm sm:line-clamp-1 text-muted">{template.description}</p>
        </div>
      </div>
    ),
  },
  {
    id: "organization",
    header: "Organization",
    extra: true,
    width: "14%",
    sort: (row) => row.organization_display_name || row.organization_name,
    cell: (row) => row.organization_display_name || row.organization_name,
  },
  {
    id: "used",
    header: "Used by",
    extra: true,
    width: "15%",
    sort: (row) => -row.active_user_count,
    cell: (row) => usedBy(row.active_user_count),
  },
  {
    id: "time",
    header: "Build time",
    extra: true,
    width: "12%",
    cell: (row) => buildTime(row),
  },
  {
    id: "updated",
    header: "Last updated",
    extra: true,
    width: "14%",
    sort: (row) => -Date.parse(row.updated_at),
    cell: (row) => (
      <span className="text-muted">
        <Ago at={row.updated_at} />
      </span>
    ),
  },
  {
    id: "create",
    header: "Actions",
    hidden: true,
    align: "right",
    width: "13rem",
    cell: (row) => <Create template={row} />,
  },
];

function Create({ template }: { template: Template }) {
  const mayCreate = useMayCreateWorkspace(template.organization_id);
  if (template.deprecated) return null;
  if (mayCreate === false)
    return (
      <Hint className="text-sm text-muted" text={NO_WORKSPACES}>
        View only
      </Hint>
    );
  return mayCreate ? (
    <ButtonLink
      size="sm"
      to={`${templatePath(template)}/workspace`}
      aria-label={`Create workspace from ${template.display_name || template.name}`}
    >
      Create workspace
    </ButtonLink>
  ) : null;
}

export function TemplatesPage() {
  useTitle("Templates");
  const may = usePermissions();
  const { filter, show } = useListAddress(USUAL);
  const list = useQuery(templates(filter));
  const homes = useQuery(organizations).data ?? [];
  const many = homes.length > 1;
  const menus: FilterMenu[] = many
    ? [
        {
          term: "organization",
          label: "Organization",
          options: homes.map((home) => ({
            value: home.name,
            text: home.display_name || home.name,
          })),
        },
      ]
    : [];
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  return (
    <>
      <PageHead
        title="Templates"
        description="Templates define the resources of workspaces."
        actions={
          may.createAnyTemplate ? (
            <ButtonLink variant="primary" to="/templates/new" icon={<Plus />}>
              New template
            </ButtonLink>
          ) : null
        }
      />
      <FilterBar
        label="Search templates"
        placeholder="Name, or author:me deprecated:true"
        filter={filter}
        onChange={(next) => show(next)}
        presets={PRESETS}
        menus={menus}
        problem={problem}
      />
      {list.isPending ? <SkeletonRows /> : null}
      {list.isError && !problem ? (
        <Failure error={list.error} retry={() => void list.refetch()} />
      ) : null}
      {list.data ? (
        <DataTable
          label="Templates"
          data={list.data}
          columns={many ? COLUMNS : COLUMNS.filter((column) => column.id !== "organization")}
          rowKey={(template) => template.id}
          rowTestId={(template) => `template-${template.name}`}
          empty={
            filter !== "" && filter !== USUAL ? (
              <Empty icon={LayoutTemplate} title="No results">
                Change or clear the search.
              </Empty>
            ) : may.createAnyTemplate || !may.known ? (
              <Empty
                icon={LayoutTemplate}
                title="No templates yet"
                command="coder templates init && coder templates push"
                actions={
                  <ButtonLink variant="primary" to="/templates/new">
                    Use a starter template
                  </ButtonLink>
                }
              >
                A template defines the resources of a workspace in Terraform.
              </Empty>
            ) : (
              <Empty icon={LayoutTemplate} title="No templates yet">
                A template administrator has to create one first.
              </Empty>
            )
          }
        />
      ) : null}
    </>
  );
}
