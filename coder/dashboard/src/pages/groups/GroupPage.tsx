// A group and its members; the settings have a page of their own.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical, Settings, Trash2, UserMinus, UsersRound } from "lucide-react";
import { useState, type ReactNode } from "react";
import { useNavigate, useParams } from "react-router";

import { get, patch, remove } from "../../api/client";
import { groupByName } from "../../api/queries/people";
import type { Group, ReducedUser } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { StatusText } from "../../ui/Badge";
import { Button, ButtonLink, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Person } from "../../features/person/Person";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { Loading, SkeletonRows } from "../../ui/Loading";
import { Menu, MenuItem } from "../../ui/Menu";
import { Notice } from "../../ui/Notice";
import { Narrow, PageHead } from "../../ui/Page";
import { PersonSearch } from "../../features/person/PersonSearch";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { groupName, isEveryone } from "../../features/person/everyone";
import { GroupForm } from "./GroupForm";
import { useGroupsHome, type GroupsHome } from "./useGroupsHome";
import { counted, countedAtStart } from "../../lib/words";

/** Update one field of a group and leave the rest: null means unchanged in the API. */
const CHANGE = {
  add_users: [],
  remove_users: [],
  name: "",
  display_name: null,
  avatar_url: null,
  quota_allowance: null,
};

export function GroupPage() {
  return <Found>{(home, group) => <Members home={home} group={group} />}</Found>;
}

export function GroupSettingsPage() {
  return <Found>{(home, group) => <GroupSettings home={home} group={group} />}</Found>;
}

function Found({ children }: { children: (home: GroupsHome, group: Group) => ReactNode }) {
  const { group: name = "" } = useParams();
  const home = useGroupsHome();
  const group = useQuery({
    ...groupByName(home?.organization.name ?? "", name),
    enabled: home !== null,
  });
  useTitle(group.data ? groupName(group.data) : "Groups");
  if (!home || group.isPending) return <Loading />;
  if (group.isLoadingError)
    return (
      <>
        <PageHead title="Group" crumbs={[["Groups", home.base], [name]]} />
        <Failure error={group.error} retry={() => void group.refetch()} />
      </>
    );
  return children(home, group.data);
}

function useChanged(home: GroupsHome) {
  const queries = useQueryClient();
  return () =>
    queries.invalidateQueries({ queryKey: ["organizations", home.organization.name, "groups"] });
}

function Members({ home, group }: { home: GroupsHome; group: Group }) {
  const changed = useChanged(home);
  const [deleting, setDeleting] = useState(false);
  const navigate = useNavigate();
  const everyone = isEveryone(group);
  const change = (fields: object, message: string) =>
    patch(`/api/v2/groups/${group.id}`, { ...CHANGE, ...fields }).then(
      () => {
        toast.done(message);
        return changed();
      },
      (error: unknown) => {
        toast.failed("Failed to update the group", error);
        throw error;
      },
    );
  const isEditable = home.may.updateGroups === true && !everyone && group.source !== "oidc";
  const columns: Column<ReducedUser>[] = [
    {
      id: "user",
      header: "User",
      cell: (user) => <Person person={user} />,
    },
    {
      id: "status",
      header: "Status",
      extra: true,
      cell: (row) => (
        <StatusText tone={row.status === "active" ? "good" : "idle"}>
          {row.status[0]?.toUpperCase()}
          {row.status.slice(1)}
        </StatusText>
      ),
    },
    {
      id: "seen",
      header: "Last seen",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <Ago at={row.last_seen_at} />
        </span>
      ),
    },
    ...(isEditable
      ? [
          {
            id: "actions",
            header: "Actions",
            hidden: true,
            align: "right",
            cell: (row) => (
              <Menu
                label={`Actions for ${row.username}`}
                trigger={
                  <IconButton size="sm" label="Open menu">
                    <EllipsisVertical />
                  </IconButton>
                }
              >
                <MenuItem
                  danger
                  icon={<UserMinus />}
                  onSelect={() =>
                    void change({ remove_users: [row.id] }, "Member removed successfully.").catch(
                      () => undefined,
                    )
                  }
                >
                  Remove
                </MenuItem>
              </Menu>
            ),
          } satisfies Column<ReducedUser>,
        ]
      : []),
  ];
  return (
    <>
      <PageHead
        icon={<Avatar name={groupName(group)} src={group.avatar_url} size="lg" square />}
        title={groupName(group)}
        crumbs={[["Groups", home.base], [groupName(group)]]}
        description={`${countedAtStart(group.total_member_count, "member")}, quota allowance ${group.quota_allowance}`}
        actions={
          home.may.updateGroups ? (
            <>
              <ButtonLink
                to={`${home.base}/${encodeURIComponent(group.name)}/settings`}
                icon={<Settings />}
              >
                Settings
              </ButtonLink>
              {home.may.deleteGroups && !everyone ? (
                <Button icon={<Trash2 />} onClick={() => setDeleting(true)}>
                  Delete
                </Button>
              ) : null}
            </>
          ) : null
        }
      />
      {everyone ? (
        <div className="mb-4">
          <Notice kind="info" title="Every member of the organization is in this group">
            Add and remove users on the organization’s members page.
          </Notice>
        </div>
      ) : null}
      {!everyone && group.source === "oidc" ? (
        <div className="mb-4">
          <Notice kind="info" title="The identity provider manages this group’s members">
            Users join and leave the group when they sign in.
          </Notice>
        </div>
      ) : null}
      {isEditable ? (
        <PersonSearch
          exclude={new Set(group.members.map((member) => member.id))}
          organization={home.may.viewMembers ? home.organization.name : undefined}
          onAdd={(person) =>
            change({ add_users: [person.id] }, `${person.username} added to the group.`)
          }
        />
      ) : null}
      <DataTable
        label="Members"
        data={group.members}
        columns={columns}
        rowKey={(user) => user.id}
        empty={
          <Empty icon={UsersRound} title="No members yet">
            Add members of {home.name} above to give them the group’s access and quota.
          </Empty>
        }
      />
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete group ${groupName(group)}?`}
        confirm="Delete"
        typed={group.name}
        typedLabel="Name of the group to delete"
        onConfirm={async () => {
          await remove(`/api/v2/groups/${group.id}`);
          toast.done("Group deleted successfully.");
          await navigate(home.base);
          void changed();
        }}
      >
        <p>
          {group.total_member_count === 0
            ? "The group has no members."
            : `Its ${counted(group.total_member_count, "member loses", "members lose")} the ` +
              "templates, shared workspaces and quota of this group. Their accounts are kept."}
        </p>
      </Confirm>
    </>
  );
}

const fields = (group: Group) => ({
  name: group.name,
  display_name: group.display_name,
  avatar_url: group.avatar_url,
  quota_allowance: String(group.quota_allowance),
});

function GroupSettings({ home, group }: { home: GroupsHome; group: Group }) {
  const changed = useChanged(home);
  const navigate = useNavigate();
  const back = `${home.base}/${encodeURIComponent(group.name)}`;
  if (!home.known) return <SkeletonRows rows={2} />;
  return (
    <Narrow>
      <PageHead
        title="Group settings"
        crumbs={[["Groups", home.base], [groupName(group), back], ["Settings"]]}
      />
      {home.may.updateGroups ? (
        <GroupForm
          everyone={isEveryone(group)}
          start={fields(group)}
          load={async () => fields(await get<Group>(`/api/v2/groups/${group.id}`))}
          actions={<ButtonLink to={back}>Cancel</ButtonLink>}
          send={async (values) => {
            const { quota_allowance } = values;
            const saved = await patch<Group>(
              `/api/v2/groups/${group.id}`,
              isEveryone(group)
                ? { ...CHANGE, quota_allowance }
                : { ...CHANGE, ...values, name: values.name === group.name ? "" : values.name },
            );
            toast.done(`Group "${values.name}" updated successfully.`);
            await changed();
            await navigate(`${home.base}/${encodeURIComponent(saved.name)}`);
          }}
        />
      ) : (
        <Notice kind="info" title="You can view this group but not change it">
          A user administrator of the organization can change it.
        </Notice>
      )}
    </Narrow>
  );
}
