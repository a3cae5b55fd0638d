// The list of workspaces with live updates. The search and the page number are in the address.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Boxes, Star, UsersRound } from "lucide-react";
import { useState } from "react";

import { ApiError } from "../../api/client";
import { NO_WORKSPACES_ANYWHERE, usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import { templates } from "../../api/queries/templates";
import { PAGE_SIZE, workspaces } from "../../api/queries/workspaces";
import type { Workspace } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { DataTable, type Column, type Selected } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { peopleMenu } from "../../features/person/people-menu";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { Pager } from "../../ui/lists/Pager";
import { useTitle } from "../../ui/title";
import { EXTERNAL_STARTER } from "../../features/template/paths";
import { BatchBar } from "./BatchBar";
import { NewWorkspace } from "./NewWorkspace";
import { RightsOfList } from "./rights";
import { RowActions } from "./RowActions";
import { STATUS } from "../../features/workspace/status";
import { WorkspaceStatus } from "./WorkspaceStatus";

const MINE = "owner:me";
const PRESETS: readonly (readonly [string, string])[] = [
  ["My workspaces", MINE],
  ["All workspaces", ""],
  ["Running workspaces", "status:running"],
  ["Failed workspaces", "status:failed"],
  ["Outdated workspaces", "outdated:true"],
  ["Shared workspaces", "shared:true"],
  ["Dormant workspaces", "dormant:true"],
];

const COLUMNS: Column<Workspace>[] = [
  {
    id: "name",
    header: "Name",
    cell: (workspace) => (
      <div className="flex items-center gap-3">
        <span className="contents max-sm:hidden">
          <Avatar name={workspace.template_name} src={workspace.template_icon} square />
        </span>
        <div className="min-w-26">
          <span className="flex items-center gap-1.5">
            <TextLink
              to={`/@${workspace.owner_name}/${workspace.name}`}
              className="text-text [overflow-wrap:anywhere]"
            >
              {workspace.name}
            </TextLink>
            {workspace.favorite ? (
              <Star
                className="size-3.5 shrink-0 fill-current text-warn"
                role="img"
                aria-label="Favourite"
              />
            ) : null}
            {workspace.shared_with && workspace.shared_with.length > 0 ? (
              <UsersRound
                className="size-3.5 shrink-0 text-muted"
                role="img"
                aria-label={`Shared with ${workspace.shared_with.map((actor) => actor.name).join(", ")}`}
              />
            ) : null}
          </span>
          <div className="truncate text-sm text-muted">{workspace.owner_name}</div>
        </div>
      </div>
    ),
  },
  // On a phone below the name: next to it, a long state would become a column of single words.
  {
    id: "status",
    header: "Status",
    extra: true,
    plain: true,
    cell: (row) => <WorkspaceStatus workspace={row} />,
  },
  {
    id: "built",
    header: "Last built",
    extra: true,
    plain: true,
    cell: (row) => (
      <span className="text-muted">
        <span className="md:hidden">built </span>
        <Ago at={row.latest_build.created_at} />
      </span>
    ),
  },
  {
    id: "template",
    header: "Template",
    extra: true,
    plain: true,
    cell: (workspace) => (
      <div className="flex flex-wrap items-center gap-1.5">
        {workspace.template_display_name || workspace.template_name}
        {workspace.latest_build.has_external_agent ? <Tag>External</Tag> : null}
        {workspace.outdated ? <Tag tone="warn">Outdated</Tag> : null}
      </div>
    ),
  },
  {
    id: "actions",
    header: "Actions",
    hidden: true,
    align: "right",
    cell: (row) => <RowActions workspace={row} />,
  },
];

/** Deleted workspaces are in no list. */
const STATUSES = Object.entries(STATUS)
  .filter(([value]) => value !== "deleted")
  .map(([value, [text]]) => ({ value, text }));

function useMenus(): FilterMenu[] {
  const may = usePermissions();
  const templateList = useQuery(templates()).data ?? [];
  const orgs = useQuery(organizations).data ?? [];
  return [
    {
      term: "template",
      label: "Template",
      options: templateList.map((template) => ({
        value: template.name,
        text: template.display_name || template.name,
        icon: <Avatar name={template.name} src={template.icon} size="xs" square />,
      })),
    },
    { term: "status", label: "Status", options: STATUSES },
    ...(may.viewUsers ? [peopleMenu("owner", "Owner")] : []),
    ...(orgs.length > 1
      ? [
          {
            term: "organization",
            label: "Organization",
            options: orgs.map((org) => ({ value: org.name, text: org.display_name || org.name })),
          },
        ]
      : []),
  ];
}

export function WorkspacesPage() {
  useTitle("Workspaces");
  const { filter, page, show } = useListAddress(MINE);
  const list = useQuery({ ...workspaces(filter, page), placeholderData: keepPreviousData });
  const menus = useMenus();
  const [selected, setSelected] = useState<Selected>({});
  const chosen = (list.data?.workspaces ?? []).filter((workspace) => selected[workspace.id]);
  // Another search is another list: the selection is cleared so that nothing applies to unseen rows.
  const openSearch = (next: string, at = 1) => {
    if (next !== filter || at !== page) setSelected({});
    show(next, at);
  };
  const result = list.data; // a failed refresh keeps the data
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  return (
    <RightsOfList list={result?.workspaces ?? []}>
      <PageHead
        title="Workspaces"
        description={<span role="status">{result ? `${result.count} in total` : "\u00a0"}</span>}
        actions={<NewWorkspace />}
      />
      <FilterBar
        label="Search workspaces"
        placeholder="owner:me status:running name:…"
        filter={filter}
        onChange={(next) => openSearch(next)}
        presets={PRESETS}
        menus={menus}
        problem={problem}
      />
      {list.isPending ? <SkeletonRows /> : null}
      {list.isError && !problem ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      <BatchBar
        chosen={chosen}
        onDone={(remaining) =>
          setSelected(Object.fromEntries(remaining.map((workspace) => [workspace.id, true])))
        }
      />
      {result ? (
        <DataTable
          label="Workspaces"
          data={result.workspaces}
          columns={COLUMNS}
          rowKey={(workspace) => workspace.id}
          rowTestId={(workspace) => `workspace-${workspace.name}`}
          selection={{ selected, onChange: setSelected, name: (workspace) => workspace.name }}
          empty={<NoWorkspaces filtered={filter !== MINE && filter !== ""} />}
        />
      ) : null}
      {result ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={PAGE_SIZE}
          total={result.count}
          onChange={(next) => openSearch(filter, next)}
        />
      ) : null}
    </RightsOfList>
  );
}

function NoWorkspaces({ filtered }: { filtered: boolean }) {
  const may = usePermissions();
  const templateList = useQuery(templates()).data;
  if (filtered)
    return (
      <Empty icon={Boxes} title="No results">
        Change or clear the search.
      </Empty>
    );
  if (templateList?.length === 0) {
    return may.createAnyTemplate ? (
      <Empty
        icon={Boxes}
        title="No workspaces yet"
        actions={
          <>
            <ButtonLink to="/templates/new" variant="primary">
              Create template
            </ButtonLink>
            <ButtonLink to="/workspaces/attach">Attach a machine</ButtonLink>
          </>
        }
      >
        Workspaces are created from templates, and there are none yet. Start with an example, or
        attach a machine that you already have.
      </Empty>
    ) : (
      <Empty icon={Boxes} title="No workspaces yet">
        Workspaces are created from templates, and there are none yet. A template administrator has
        to create one first.
      </Empty>
    );
  }
  if (may.known && !may.createWorkspaceForAny && !may.createOwnWorkspace) {
    return (
      <Empty icon={Boxes} title="No workspaces yet">
        {NO_WORKSPACES_ANYWHERE} Workspaces shared with you appear here. Ask an administrator of
        your organization for permission to create your own.
      </Empty>
    );
  }
  const attaching = templateList?.some((template) => template.name === EXTERNAL_STARTER);
  return (
    <Empty
      icon={Boxes}
      title="No workspaces yet"
      actions={
        <>
          <ButtonLink to="/templates" variant="primary">
            Choose a template
          </ButtonLink>
          <ButtonLink to="/workspaces/attach">Attach a machine</ButtonLink>
        </>
      }
      {...(attaching
        ? { command: `coder external-workspaces create my-machine --template=${EXTERNAL_STARTER}` }
        : {})}
    >
      Create one from a template, or attach a machine you already have.
    </Empty>
  );
}
