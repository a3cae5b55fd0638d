// Everybody who has an account: search, roles, and what can be done to an account.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import {
  CircleCheck,
  CirclePause,
  EllipsisVertical,
  History,
  KeyRound,
  LogOut,
  Monitor,
  Pencil,
  Trash2,
  UserPlus,
  UsersRound,
} from "lucide-react";
import { useMemo, useState } from "react";

import { ApiError, put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { PEOPLE_SHOWN, siteRoles, users } from "../../api/queries/people";
import { me } from "../../api/queries/session";
import type { User } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Ago } from "../../ui/Ago";
import { ago } from "../../lib/time";
import { StatusText, Tag, type Tone } from "../../ui/Badge";
import { ButtonLink, IconButton } from "../../ui/Button";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { SkeletonRows } from "../../ui/Loading";
import { Menu, MenuItem, MenuSeparator } from "../../ui/Menu";
import { PageHead } from "../../ui/Page";
import { Pager } from "../../ui/lists/Pager";
import { useChoice } from "../../ui/forms/choice";
import { Person } from "../../features/person/Person";
import { RolePicker } from "../../features/person/RolePicker";
import { useTitle } from "../../ui/title";
import { Refused } from "../../ui/Refused";
import { SITE_ROLE_HINTS } from "../../features/person/roles";
import { UserDialog, type UserAction } from "./UserDialogs";
import { countedAtStart } from "../../lib/words";

const PRESETS = [
  ["All users", ""],
  ["Active users", "status:active"],
  ["Dormant users", "status:dormant"],
  ["Suspended users", "status:suspended"],
  ["Owners", "role:owner"],
  ["Service accounts", "service_account:true"],
] as const;
export const LOGIN_TYPES: Readonly<Record<string, string>> = {
  password: "Password",
  github: "GitHub",
  oidc: "OpenID Connect",
  none: "None",
  token: "Token",
  "": "None",
};
const STATUS: Record<User["status"], readonly [string, Tone]> = {
  active: ["Active", "good"],
  dormant: ["Dormant", "idle"],
  suspended: ["Suspended", "warn"],
};

export function UsersPage() {
  useTitle("Users");
  const may = usePermissions();
  const { filter, page, show } = useListAddress();
  const list = useQuery({ ...users(filter, page), placeholderData: keepPreviousData });
  const roles = useQuery(siteRoles).data;
  const [asked, setAsked] = useState<{ user: User; action: UserAction } | null>(null);
  const menus: FilterMenu[] = [
    {
      term: "status",
      label: "Status",
      options: Object.entries(STATUS).map(([value, [text]]) => ({ value, text })),
    },
    {
      term: "role",
      label: "Role",
      options: (roles ?? []).map((role) => ({ value: role.name, text: role.display_name })),
    },
    {
      term: "login_type",
      label: "Login",
      options: ["password", "oidc", "github", "none"].map((value) => ({
        value,
        text: LOGIN_TYPES[value] ?? value,
      })),
    },
  ];
  const columns = useMemo(() => columnsOf((user, action) => setAsked({ user, action })), []);
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  if (may.known && !may.viewUsers) return <Refused what="the people of this deployment" />;
  return (
    <>
      <PageHead
        title="Users"
        description={
          <span role="status">
            {list.data ? countedAtStart(list.data.count, "person", "people") : " "}
          </span>
        }
        actions={
          may.createUser ? (
            <ButtonLink look="primary" to="/deployment/users/create" icon={<UserPlus />}>
              Create user
            </ButtonLink>
          ) : null
        }
      />
      <FilterBar
        label="Search users"
        placeholder="Name, email, or status:active role:owner"
        filter={filter}
        onChange={(next) => show(next)}
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
      {list.data ? (
        <DataTable
          label="Users"
          data={list.data.users}
          columns={columns}
          rowKey={(user) => user.id}
          rowTestId={(user) => `user-${user.username}`}
          empty={
            <Empty
              icon={UsersRound}
              title="Nobody matches"
              command="coder users create --username ana --email ana@example.com"
            >
              Change the search above, or create the account.
            </Empty>
          }
        />
      ) : null}
      {list.data ? (
        <Pager
          page={page}
          stale={list.isPlaceholderData}
          size={PEOPLE_SHOWN}
          total={list.data.count}
          onChange={(next) => show(filter, next)}
        />
      ) : null}
      {asked ? (
        <UserDialog user={asked.user} action={asked.action} onClose={() => setAsked(null)} />
      ) : null}
    </>
  );
}

function columnsOf(ask: (user: User, action: UserAction) => void): Column<User>[] {
  return [
    {
      id: "user",
      header: "User",
      cell: (user) => (
        <Person person={user} tag={user.is_service_account ? <Tag>Service account</Tag> : null} />
      ),
    },
    { id: "roles", header: "Roles", extra: true, cell: (row) => <Roles user={row} /> },
    {
      id: "login",
      header: "Login",
      extra: true,
      cell: (row) => (
        <span className="text-muted">{LOGIN_TYPES[row.login_type] ?? row.login_type}</span>
      ),
    },
    {
      id: "status",
      header: "Status",
      extra: true,
      cell: (user) => (
        <div className="whitespace-nowrap">
          <StatusText tone={STATUS[user.status][1]}>{STATUS[user.status][0]}</StatusText>
          <p className="text-sm text-muted">
            {ago(user.last_seen_at) === "never" ? (
              "has not signed in yet"
            ) : (
              <>
                seen <Ago at={user.last_seen_at} />
              </>
            )}
          </p>
        </div>
      ),
    },
    {
      id: "actions",
      header: "Actions",
      hidden: true,
      align: "right",
      cell: (row) => <Actions user={row} ask={ask} />,
    },
  ];
}

function Roles({ user }: { user: User }) {
  const may = usePermissions();
  const roles = useQuery(siteRoles).data ?? [];
  const { value: chosen, choose } = useChoice(
    user.roles.map((role) => role.name),
    {
      send: (next) => put(`/api/v2/users/${user.id}/roles`, { roles: next }),
      seen: ["users"],
      failed: `The roles of ${user.username} could not be changed`,
    },
  );
  const self = useQuery(me).data?.id === user.id;
  const editable = may.updateUsers && !self && roles.some((role) => role.assignable);
  return (
    <div className="flex flex-wrap items-center gap-1">
      {chosen.length === 0 ? (
        <Tag>Member</Tag>
      ) : (
        chosen.map((name) => (
          <Tag key={name} tone={name === "owner" ? "accent" : "idle"}>
            {roles.find((role) => role.name === name)?.display_name ?? name}
          </Tag>
        ))
      )}
      {editable ? (
        <RolePicker
          name={user.username}
          chosen={chosen}
          roles={roles}
          onChange={choose}
          hints={SITE_ROLE_HINTS}
        />
      ) : null}
    </div>
  );
}

function Actions({ user, ask }: { user: User; ask: (user: User, action: UserAction) => void }) {
  const may = usePermissions();
  const mine = useMe().id === user.id;
  const suspended = user.status === "suspended";
  return (
    <Menu
      label={`Actions for ${user.username}`}
      trigger={
        <IconButton size="sm" label="Open menu">
          <EllipsisVertical />
        </IconButton>
      }
    >
      <MenuItem
        icon={<Monitor />}
        to={`/workspaces?filter=${encodeURIComponent(`owner:${user.username}`)}`}
      >
        View workspaces
      </MenuItem>
      {may.viewAnyAuditLog ? (
        <MenuItem
          icon={<History />}
          to={`/audit?filter=${encodeURIComponent(`username:${user.username}`)}`}
        >
          View activity
        </MenuItem>
      ) : null}
      {may.endAnySession && !mine ? (
        <MenuItem icon={<LogOut />} onSelect={() => ask(user, "sessions")}>
          Sessions…
        </MenuItem>
      ) : null}
      {may.updateUsers ? (
        <>
          <MenuSeparator />
          <MenuItem icon={<Pencil />} onSelect={() => ask(user, "edit")}>
            Edit…
          </MenuItem>
          {user.login_type === "password" ? (
            <MenuItem icon={<KeyRound />} onSelect={() => ask(user, "password")}>
              Reset password…
            </MenuItem>
          ) : null}
          {mine ? null : suspended ? (
            <MenuItem icon={<CircleCheck />} onSelect={() => ask(user, "activate")}>
              Activate…
            </MenuItem>
          ) : (
            <MenuItem icon={<CirclePause />} onSelect={() => ask(user, "suspend")}>
              Suspend…
            </MenuItem>
          )}
        </>
      ) : null}
      {may.deleteUser && !mine ? (
        <MenuItem danger icon={<Trash2 />} onSelect={() => ask(user, "delete")}>
          Delete…
        </MenuItem>
      ) : null}
    </Menu>
  );
}
