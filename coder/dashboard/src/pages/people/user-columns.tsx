// The columns of the users table, with the actions on each user.
import { useQuery } from "@tanstack/react-query";
import {
  CircleCheck,
  CirclePause,
  EllipsisVertical,
  History,
  KeyRound,
  LogOut,
  Monitor,
  Pencil,
  ShieldCheck,
  Trash2,
} from "lucide-react";

import { put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { siteRoles } from "../../api/queries/people";
import { me } from "../../api/queries/session";
import type { User } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Ago } from "../../ui/Ago";
import { ago } from "../../lib/time";
import { StatusText, Tag, type Tone } from "../../ui/Badge";
import { IconButton } from "../../ui/Button";
import { type Column } from "../../ui/lists/DataTable";
import { Menu, MenuItem, MenuSeparator } from "../../ui/Menu";
import { useChoice } from "../../ui/forms/choice";
import { Person } from "../../features/person/Person";
import { RolePicker } from "../../features/person/RolePicker";
import { SITE_ROLE_HINTS } from "../../features/person/roles";
import { type UserAction } from "./UserDialogs";

export const LOGIN_TYPES: Readonly<Record<string, string>> = {
  password: "Password",
  github: "GitHub",
  oidc: "OpenID Connect",
  none: "None",
  token: "Token",
  "": "None",
};
export const STATUS: Record<User["status"], readonly [string, Tone]> = {
  active: ["Active", "good"],
  dormant: ["Dormant", "idle"],
  suspended: ["Suspended", "warn"],
};

export function columnsOf(ask: (user: User, action: UserAction) => void): Column<User>[] {
  return [
    {
      id: "user",
      header: "User",
      width: "34%",
      sort: (row) => row.name || row.username,
      cell: (user) => (
        <Person person={user} tag={user.is_service_account ? <Tag>Service account</Tag> : null} />
      ),
    },
    {
      id: "roles",
      header: "Roles",
      extra: true,
      width: "24%",
      cell: (row) => <Roles user={row} />,
    },
    {
      id: "login",
      header: "Login",
      extra: true,
      width: "14%",
      sort: (row) => LOGIN_TYPES[row.login_type] ?? row.login_type,
      cell: (row) => (
        <span className="text-muted">{LOGIN_TYPES[row.login_type] ?? row.login_type}</span>
      ),
    },
    {
      id: "status",
      header: "Status",
      extra: true,
      width: "22%",
      sort: (row) => -Date.parse(row.last_seen_at ?? ""),
      cell: (user) => (
        <div className="whitespace-nowrap">
          <StatusText tone={STATUS[user.status][1]}>{STATUS[user.status][0]}</StatusText>
          <p className="text-sm text-muted">
            {ago(user.last_seen_at) === "never" ? (
              "never signed in"
            ) : (
              <>
                last seen <Ago at={user.last_seen_at} />
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
      width: "6rem",
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
      failed: `Failed to update the roles of ${user.username}`,
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
  const isSelf = useMe().id === user.id;
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
      <MenuItem
        icon={<ShieldCheck />}
        to={`/deployment/users/${encodeURIComponent(user.username)}/access`}
      >
        Review access
      </MenuItem>
      {may.endAnySession && !isSelf ? (
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
          {isSelf ? null : suspended ? (
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
      {may.deleteUser && !isSelf ? (
        <MenuItem danger icon={<Trash2 />} onSelect={() => ask(user, "delete")}>
          Delete…
        </MenuItem>
      ) : null}
    </Menu>
  );
}
