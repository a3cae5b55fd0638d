// All accounts: search, roles, and actions on an account.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { UserPlus, UsersRound } from "lucide-react";
import { useMemo, useState } from "react";

import { ApiError } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { siteRoles, users } from "../../api/queries/people";
import type { User } from "../../api/types";
import { ButtonLink } from "../../ui/Button";
import { DataTable } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { FilterBar, useListAddress, type FilterMenu } from "../../ui/lists/FilterBar";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useListView } from "../../ui/lists/list-view";
import { Pager } from "../../ui/lists/Pager";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { UserDialog, type UserAction } from "./UserDialogs";
import { countedAtStart } from "../../lib/words";
import { STATUS, LOGIN_TYPES, columnsOf } from "./user-columns";

const PRESETS = [
  ["All users", ""],
  ["Active users", "status:active"],
  ["Dormant users", "status:dormant"],
  ["Suspended users", "status:suspended"],
  ["Owners", "role:owner"],
  ["Service accounts", "service_account:true"],
] as const;

export function UsersPage() {
  useTitle("Users");
  const may = usePermissions();
  const { filter, page, show } = useListAddress();
  const { size } = useListView();
  const list = useQuery({ ...users(filter, page, size), placeholderData: keepPreviousData });
  const roles = useQuery(siteRoles).data;
  const [dialog, setDialog] = useState<{ user: User; action: UserAction } | null>(null);
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
  const columns = useMemo(() => columnsOf((user, action) => setDialog({ user, action })), []);
  const problem =
    list.error instanceof ApiError && list.error.status === 400
      ? (list.error.validations[0]?.detail ?? list.error.message)
      : undefined;
  if (may.known && !may.viewUsers)
    return <PermissionDenied subject="the users of this deployment" />;
  return (
    <>
      <PageHead
        title="Users"
        description={
          <span role="status">{list.data ? countedAtStart(list.data.count, "user") : " "}</span>
        }
        actions={
          may.createUser ? (
            <ButtonLink variant="primary" to="/deployment/users/create" icon={<UserPlus />}>
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
          total={list.data.count}
          rowKey={(user) => user.id}
          rowTestId={(user) => `user-${user.username}`}
          empty={
            <Empty
              icon={UsersRound}
              title="No results"
              command="coder users create --username ana --email ana@example.com"
            >
              Try another search, or create the user.
            </Empty>
          }
        />
      ) : null}
      {list.data ? (
        <Pager
          adjustable
          page={page}
          stale={list.isPlaceholderData}
          size={size}
          total={list.data.count}
          onChange={(next) => show(filter, next)}
        />
      ) : null}
      {dialog ? (
        <UserDialog user={dialog.user} action={dialog.action} onClose={() => setDialog(null)} />
      ) : null}
    </>
  );
}
