// Tokens for API clients. Each can be revoked separately.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { remove } from "../../api/client";
import { authorizationCheck, useChecks } from "../../api/permissions";
import { tokenConfig, tokens } from "../../api/queries/account";
import type { APIKeyWithOwner } from "../../api/types";
import { LastUsed } from "../../features/session/LastUsed";
import { useMe } from "../../features/session/useMe";
import { Ago } from "../../ui/Ago";
import { Tag } from "../../ui/Badge";
import { ButtonLink, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { isExpired, scopesText, suggestedHours } from "./token-words";

export function TokensPage() {
  useTitle("Settings");
  const me = useMe();
  const [params, setParams] = useSearchParams();
  const everyone = params.get("all") === "true";
  const expired = params.get("expired") === "true";
  const may = useChecks(["all-tokens"], { all: authorizationCheck("api_key", "read") });
  const list = useQuery(tokens(everyone, expired));
  const config = useQuery(tokenConfig).data;
  const [deleting, setDeleting] = useState<APIKeyWithOwner | null>(null);
  const queries = useQueryClient();
  const flag = (name: string, on: boolean) =>
    setParams(
      (old) => {
        const next = new URLSearchParams(old);
        if (on) next.set(name, "true");
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  const end = async () => {
    if (!deleting) return;
    await remove(`/api/v2/users/${deleting.user_id}/keys/${deleting.id}`);
    await queries.invalidateQueries({ queryKey: ["users", "me", "keys"] });
    toast.done(`Token "${deleting.token_name}" deleted successfully.`);
  };
  const columns: Column<APIKeyWithOwner>[] = [
    {
      id: "name",
      header: "Name",
      cell: (row) => (
        <div className="min-w-0">
          <p className="font-medium [overflow-wrap:anywhere]">{row.token_name || row.id}</p>
          <p className="text-sm text-muted">{row.id}</p>
        </div>
      ),
    },
    ...(everyone
      ? [
          {
            id: "owner",
            header: "Owner",
            extra: true,
            cell: (row) => row.username,
          } satisfies Column<APIKeyWithOwner>,
        ]
      : []),
    {
      id: "scope",
      header: "Permissions",
      extra: true,
      cell: (row) => <span title={row.scopes.join(", ")}>{scopesText(row.scopes)}</span>,
    },
    {
      id: "used",
      header: "Last used",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <LastUsed at={row.last_used} />
        </span>
      ),
    },
    {
      id: "expires",
      header: "Expires",
      cell: (row) => (isExpired(row) ? <Tag tone="bad">Expired</Tag> : <Ago at={row.expires_at} />),
    },
    {
      id: "created",
      header: "Created",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <Ago at={row.created_at} />
        </span>
      ),
    },
    {
      id: "end",
      header: "Actions",
      hidden: true,
      align: "right",
      cell: (row) => (
        <IconButton
          size="sm"
          label={`Delete token ${row.token_name}`}
          onClick={() => setDeleting(row)}
        >
          <Trash2 />
        </IconButton>
      ),
    },
  ];
  return (
    <>
      <PageHead
        title="Tokens"
        description="Scripts, CI and other programs use tokens instead of your password."
        actions={
          <ButtonLink variant="primary" to="/settings/tokens/new" icon={<Plus />}>
            Add token
          </ButtonLink>
        }
      />
      <div className="mb-4 flex flex-wrap gap-x-6 gap-y-2">
        <Switch label="Show expired" checked={expired} onChange={(on) => flag("expired", on)} />
        {may.all ? (
          <Switch
            label="Show all users’ tokens"
            checked={everyone}
            onChange={(on) => flag("all", on)}
          />
        ) : null}
      </div>
      {list.isPending ? <SkeletonRows rows={3} /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.data ? (
        <DataTable
          label="Tokens"
          data={list.data}
          columns={columns}
          rowKey={(row) => row.id}
          rowTestId={(row) => `token-${row.token_name}`}
          empty={
            <Empty
              icon={KeyRound}
              title="No tokens yet"
              actions={
                <ButtonLink variant="primary" to="/settings/tokens/new" icon={<Plus />}>
                  Add token
                </ButtonLink>
              }
              command={`coder tokens create --name ci --lifetime ${suggestedHours(config?.max_token_lifetime ?? 0)}h`}
            >
              A token lets a program act as you, with the permissions and lifetime that you choose.
              Create one per program, so that you can revoke each separately.
            </Empty>
          }
        />
      ) : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete token ${deleting?.token_name ?? ""}?`}
        confirm="Delete"
        onConfirm={end}
      >
        <p>
          Programs that use it
          {deleting && deleting.user_id !== me.id ? ` in the name of ${deleting.username}` : ""} are
          rejected from now on. The token cannot be restored; a new token has another value.
        </p>
      </Confirm>
    </>
  );
}
