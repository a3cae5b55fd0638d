// The list of workspaces with live updates. The search and the page number are in the address.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Boxes } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { ApiError } from "../../api/client";
import { NO_WORKSPACES_ANYWHERE, usePermissions } from "../../api/permissions";
import { organizations } from "../../api/queries/session";
import { templates } from "../../api/queries/templates";
import { workspaces } from "../../api/queries/workspaces";
import type { Workspace } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { ButtonLink } from "../../ui/Button";
import { DataTable, type Selected } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { peopleMenu } from "../../features/person/people-menu";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useListView } from "../../ui/lists/list-view";
import { Pager } from "../../ui/lists/Pager";
import { useTitle } from "../../ui/title";
import { EXTERNAL_STARTER } from "../../features/template/paths";
import { allMatching, unique } from "../../features/workspace/all-matching";
import { useOffers } from "../../features/workspace/offers";
import { NewWorkspace } from "./NewWorkspace";
import { RightsOfList } from "./rights";
import { COLUMNS } from "./workspace-columns";
import { STATUS } from "../../features/workspace/status";

// Loaded with the first selection: the first page has no use for it.
const BatchBar = lazy(async () => ({ default: (await import("./BatchBar")).BatchBar }));

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

/** Deleted workspaces are in no list. */
const STATUSES = Object.entries(STATUS)
  .filter(([value]) => value !== "deleted")
  .map(([value, [text]]) => ({ value, text }));

function useMenus(): FilterMenu[] {
  const may = usePermissions();
  const all = useQuery(templates());
  // the term finds all of one name
  const templateList = new Map((all.data ?? []).map((template) => [template.name, template]));
  const orgs = useQuery(organizations).data ?? [];
  return [
    {
      term: "template",
      label: "Template",
      failure: all.isLoadingError
        ? `Failed to load the templates: ${all.error.message}`
        : undefined,
      options: [...templateList.values()].map((template) => ({
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
  const { size } = useListView();
  const list = useQuery({ ...workspaces(filter, page, size), placeholderData: keepPreviousData });
  const menus = useMenus();
  const [selected, setSelected] = useState<Selected>({});
  const [others, setOthers] = useState<readonly Workspace[]>([]); // of other pages, after "select all"
  const known = useOffers(unique([...(list.data?.workspaces ?? []), ...others]));
  const shown = new Set(list.data?.workspaces.map((workspace) => workspace.id));
  const chosen = known.filter((workspace) => selected[workspace.id]);
  const [actions, setActions] = useState<HTMLElement | null>(null);
  const [acting, setActing] = useState(false); // stays: a dialog of the bar outlives the selection
  if (chosen.length > 0 && !acting) setActing(true);
  // Another search is another list: the selection is cleared so that nothing applies to unseen rows.
  const openSearch = (next: string, at = 1) => {
    if (next !== filter || at !== page) {
      setSelected({});
      setOthers([]);
    }
    show(next, at);
  };
  const result = list.data; // a failed refresh keeps the data
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  return (
    <RightsOfList list={known}>
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
      {acting ? (
        <Suspense fallback={null}>
          <BatchBar
            place={actions}
            chosen={chosen}
            total={result?.count ?? 0}
            page={result?.workspaces.length ?? 0}
            onSelectAll={async () => {
              const all = await allMatching(filter);
              setOthers(all);
              setSelected(Object.fromEntries(all.map((workspace) => [workspace.id, true])));
            }}
            onDone={(remaining) =>
              setSelected(Object.fromEntries(remaining.map((workspace) => [workspace.id, true])))
            }
          />
        </Suspense>
      ) : null}
      {result ? (
        <DataTable
          label="Workspaces"
          data={known.filter((workspace) => shown.has(workspace.id))}
          columns={COLUMNS}
          total={result.count}
          rowKey={(workspace) => workspace.id}
          rowTestId={(workspace) => `workspace-${workspace.name}`}
          selection={{ selected, onChange: setSelected, name: (workspace) => workspace.name }}
          empty={<NoWorkspaces filtered={filter !== MINE && filter !== ""} />}
        />
      ) : null}
      <div ref={setActions} />
      {result ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={size}
          adjustable
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
