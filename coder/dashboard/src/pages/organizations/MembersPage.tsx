// The members of an organization with their roles and groups.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical, UserMinus, UsersRound } from "lucide-react";
import { useState } from "react";

import { ApiError, post, put, remove } from "../../api/client";
import { members, organizationRoles } from "../../api/queries/organizations";
import { groupsOf } from "../../api/queries/people";
import type { AssignableRoles, OrganizationMemberWithUserData } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Tag } from "../../ui/Badge";
import { IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress } from "../../ui/lists/FilterBar";
import { SkeletonRows } from "../../ui/Loading";
import { Menu, MenuItem } from "../../ui/Menu";
import { PageHead, TextLink } from "../../ui/Page";
import { useListView } from "../../ui/lists/list-view";
import { Pager } from "../../ui/lists/Pager";
import { Person } from "../../features/person/Person";
import { PersonSearch } from "../../features/person/PersonSearch";
import { useChoice } from "../../ui/forms/choice";
import { RolePicker } from "../../features/person/RolePicker";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { ORGANIZATION_ROLE_HINTS } from "../../features/person/roles";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";

type Member = OrganizationMemberWithUserData;

export function MembersPage() {
  const view = useOrganization();
  useTitle("Members", view?.name ?? "");
  return view ? <Members view={view} /> : null;
}

function Members({ view }: { view: OrganizationView }) {
  const { organization, may, home } = view;
  const { filter, page, show } = useListAddress();
  const { size } = useListView();
  const list = useQuery({
    ...members(organization.name, filter, page, size),
    placeholderData: keepPreviousData,
  });
  const roles = useQuery(organizationRoles(organization.name)).data ?? [];
  const groups = useQuery({
    ...groupsOf(organization.name),
    enabled: may.viewGroups === true,
  }).data;
  const queries = useQueryClient();
  const [leaving, setLeaving] = useState<Member | null>(null);
  const changed = () =>
    queries.invalidateQueries({ queryKey: ["organizations", organization.name, "members"] });
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  const columns: Column<Member>[] = [
    {
      id: "user",
      header: "User",
      cell: (member) => <Person person={member} />,
    },
    {
      id: "roles",
      header: "Roles",
      extra: true,
      cell: (row) => <MemberRoles view={view} member={row} roles={roles} />,
    },
    ...(may.viewGroups
      ? [
          {
            id: "groups",
            header: "Groups",
            extra: true,
            cell: (row) => {
              if (!groups) return <span className="text-muted">-</span>;
              const ownGroups = groups.filter(
                (group) =>
                  group.id !== organization.id &&
                  group.members.some((member) => member.id === row.user_id),
              );
              return ownGroups.length === 0 ? (
                <span className="text-muted">None</span>
              ) : (
                <span className="flex min-w-24 flex-wrap gap-x-2 [overflow-wrap:anywhere]">
                  {ownGroups.map((group) => (
                    <TextLink key={group.id} to={`${home}/groups/${group.name}`}>
                      {group.display_name || group.name}
                    </TextLink>
                  ))}
                </span>
              );
            },
          } satisfies Column<Member>,
        ]
      : []),
    {
      id: "actions",
      header: "Actions",
      hidden: true,
      align: "right",
      cell: (member) =>
        may.removeMembers ? (
          <Menu
            label={`Actions for ${member.username}`}
            trigger={
              <IconButton size="sm" label="Open menu">
                <EllipsisVertical />
              </IconButton>
            }
          >
            <MenuItem danger icon={<UserMinus />} onSelect={() => setLeaving(member)}>
              Remove…
            </MenuItem>
          </Menu>
        ) : null,
    },
  ];
  const add = (id: string, name: string) =>
    post(`/api/v2/organizations/${organization.name}/members/${id}`).then(
      () => {
        toast.done(`User "${name}" added to organization successfully.`);
        return changed();
      },
      (error: unknown) => {
        toast.failed(`Failed to add ${name}`, error);
        throw error;
      },
    );
  return (
    <>
      <PageHead
        title="Members"
        description={
          <span role="status">{list.data ? `${list.data.count} in ${view.name}` : " "}</span>
        }
      />
      {may.addMembers ? (
        <PersonSearch
          exclude={new Set((list.data?.members ?? []).map((member) => member.user_id))}
          onAdd={(person) => add(person.id, person.username)}
        />
      ) : null}
      <FilterBar
        label="Search members"
        placeholder="by name or email"
        filter={filter}
        onChange={(next) => show(next)}
        problem={problem}
      />
      {list.isPending ? <SkeletonRows /> : null}
      {list.isError && !problem ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {list.data ? (
        <DataTable
          label="Members"
          data={list.data.members}
          columns={columns}
          rowKey={(member) => member.user_id}
          empty={
            <Empty icon={UsersRound} title={filter ? "No results" : "No members yet"}>
              {filter
                ? "Try another search."
                : "Members can use the templates of this organization and have workspaces in it."}
            </Empty>
          }
        />
      ) : null}
      {list.data ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={size}
          adjustable
          total={list.data.count}
          onChange={(next) => show(filter, next)}
        />
      ) : null}
      <Confirm
        open={leaving !== null}
        onClose={() => setLeaving(null)}
        title={`Remove ${leaving?.username ?? ""} from ${view.name}?`}
        confirm="Remove"
        onConfirm={async () => {
          await remove(`/api/v2/organizations/${organization.name}/members/${leaving?.user_id}`);
          toast.done("User removed from organization successfully.");
          await changed();
        }}
      >
        <p>
          They lose access to its templates, and their roles and groups in it. Their account and
          their workspaces are kept.
        </p>
      </Confirm>
    </>
  );
}

function MemberRoles({
  view,
  member,
  roles,
}: {
  view: OrganizationView;
  member: Member;
  roles: readonly AssignableRoles[];
}) {
  const self = useMe().id === member.user_id;
  const { value: chosen, choose } = useChoice(
    member.roles.map((role) => role.name),
    {
      send: (next) =>
        put(`/api/v2/organizations/${view.organization.name}/members/${member.user_id}/roles`, {
          roles: next,
        }),
      seen: ["organizations", view.organization.name, "members"],
      failed: `Failed to update the roles of ${member.username}`,
    },
  );
  const shown = (name: string) => roles.find((role) => role.name === name)?.display_name || name;
  return (
    <div className="flex flex-wrap items-center gap-1">
      {member.global_roles
        .filter((role) => role.name !== "member")
        .map((role) => (
          <Tag key={`site ${role.name}`} tone="accent" title="Site-wide role">
            {role.display_name || role.name}
          </Tag>
        ))}
      {chosen[0] === undefined ? null : <Tag>{shown(chosen[0])}</Tag>}
      {chosen.length > 1 ? (
        <Tag title={chosen.slice(1).map(shown).join(", ")}>+{chosen.length - 1} more</Tag>
      ) : null}
      {chosen.length === 0 && member.global_roles.length === 0 ? <Tag>Member</Tag> : null}
      {view.may.assignRoles && !self ? (
        <RolePicker
          name={member.username}
          chosen={chosen}
          roles={roles}
          onChange={choose}
          hints={ORGANIZATION_ROLE_HINTS}
        />
      ) : null}
    </div>
  );
}
