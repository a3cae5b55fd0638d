// The groups of an organization.
import { useQuery } from "@tanstack/react-query";
import { Plus, UsersRound } from "lucide-react";
import { useNavigate } from "react-router";

import { groupsOf } from "../../api/queries/people";
import type { Group } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress } from "../../ui/lists/FilterBar";
import { Loading, SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { groupName, isEveryone } from "../../features/person/everyone";
import { useGroupsHome, type GroupsHome } from "./useGroupsHome";

export function GroupsPage() {
  useTitle("Groups");
  const home = useGroupsHome();
  return home ? <Groups home={home} /> : <Loading />;
}

function Groups({ home }: { home: GroupsHome }) {
  const { filter, show } = useListAddress();
  const navigate = useNavigate();
  const list = useQuery(groupsOf(home.organization.name));
  const needle = filter.trim().toLowerCase();
  const matches = (list.data ?? []).filter((group) =>
    `${group.name} ${group.display_name}`.toLowerCase().includes(needle),
  );
  const columns: Column<Group>[] = [
    {
      id: "name",
      header: "Name",
      cell: (group) => (
        <div className="flex items-center gap-3">
          <Avatar name={groupName(group)} src={group.avatar_url} square />
          <div className="min-w-0">
            <span className="flex flex-wrap items-center gap-2">
              <TextLink
                to={`${home.base}/${encodeURIComponent(group.name)}`}
                className="text-text [overflow-wrap:anywhere]"
              >
                {groupName(group)}
              </TextLink>
              {isEveryone(group) ? (
                <Tag>All members</Tag>
              ) : group.source === "oidc" ? (
                <Tag title="Members are synced from the identity provider">Synced</Tag>
              ) : null}
            </span>
            {groupName(group) === group.name ? null : (
              <p className="text-sm text-muted">{group.name}</p>
            )}
          </div>
        </div>
      ),
    },
    {
      id: "members",
      header: "Members",
      cell: (group) => (
        <div className="flex items-center gap-2">
          <span className="flex -space-x-1.5 max-sm:hidden">
            {group.members.slice(0, 5).map((member) => (
              <span key={member.id} className="rounded-full ring-2 ring-surface">
                <Avatar name={member.username} src={member.avatar_url} size="sm" />
              </span>
            ))}
          </span>
          <span className="text-muted tabular-nums">{group.total_member_count}</span>
        </div>
      ),
    },
    {
      id: "quota",
      header: "Quota",
      extra: true,
      align: "right",
      cell: (row) => <span className="text-muted tabular-nums">{row.quota_allowance}</span>,
    },
  ];
  return (
    <>
      <PageHead
        title="Groups"
        description="Groups share template access, workspaces and quota."
        actions={
          home.may.createGroups ? (
            <ButtonLink variant="primary" to={`${home.base}/create`} icon={<Plus />}>
              Create group
            </ButtonLink>
          ) : null
        }
      />
      <FilterBar
        label="Search groups"
        placeholder="by name"
        filter={filter}
        onChange={(next) => show(next)}
      />
      {list.isPending ? <SkeletonRows rows={3} /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.data ? (
        <DataTable
          label="Groups"
          data={matches}
          columns={columns}
          rowKey={(group) => group.id}
          onRowClick={(group) => void navigate(`${home.base}/${encodeURIComponent(group.name)}`)}
          rowTestId={(group) => `group-${group.id}`}
          empty={
            <Empty
              icon={UsersRound}
              title={needle ? "No results" : "No groups yet"}
              command="coder groups create backend"
              actions={
                home.may.createGroups && !needle ? (
                  <ButtonLink variant="primary" to={`${home.base}/create`}>
                    Create group
                  </ButtonLink>
                ) : null
              }
            >
              {needle
                ? "Try another search."
                : "Create a group to give several users access to a template at once."}
            </Empty>
          }
        />
      ) : null}
    </>
  );
}
