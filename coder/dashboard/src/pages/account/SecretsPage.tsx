// Secrets: values that all workspaces of the user get, as environment variables or files. Values
// are never shown.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Lock, Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";

import { get, patch, post, remove, seg } from "../../api/client";
import { secrets } from "../../api/queries/account";
import type { UserSecret } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Ago } from "../../ui/Ago";
import { Tag } from "../../ui/Badge";
import { Button, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { ConflictNotice, useConflict } from "../../ui/forms/conflict";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Dialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { Checkbox } from "../../ui/forms/Toggle";
import { TextArea, TextField } from "../../ui/forms/Field";
import { useForm } from "../../ui/forms/form";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";

export function SecretsPage() {
  useTitle("Settings");
  const me = useMe();
  const queries = useQueryClient();
  const list = useQuery(secrets(me.id));
  const [editing, setEditing] = useState<UserSecret | "new" | null>(null);
  const [deleting, setDeleting] = useState<UserSecret | null>(null);
  const refresh = () => queries.invalidateQueries({ queryKey: secrets(me.id).queryKey });
  const end = async () => {
    if (!deleting) return;
    await remove(`/api/v2/users/${me.id}/secrets/${seg(deleting.name)}`);
    await refresh();
    toast.done(`Secret "${deleting.name}" deleted successfully.`);
  };
  const add = (
    <Button variant="primary" icon={<Plus />} onClick={() => setEditing("new")}>
      Add secret
    </Button>
  );
  const columns: Column<UserSecret>[] = [
    {
      id: "name",
      header: "Name",
      cell: (row) => (
        <div>
          <p className="font-medium [overflow-wrap:anywhere]">
            {row.name} {row.enabled ? null : <Tag>Off</Tag>}
          </p>
          {row.description ? <p className="text-sm text-muted">{row.description}</p> : null}
        </div>
      ),
    },
    {
      id: "where",
      header: "Available as",
      cell: (row) => (
        <div className="flex flex-col gap-0.5">
          {row.env_name ? <code className="text-sm">${row.env_name}</code> : null}
          {row.file_path ? <code className="text-sm">{row.file_path}</code> : null}
          {!row.env_name && !row.file_path ? (
            <span className="text-muted">not available</span>
          ) : null}
        </div>
      ),
    },
    {
      id: "changed",
      header: "Updated",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <Ago at={row.updated_at} />
        </span>
      ),
    },
    {
      id: "act",
      header: "Actions",
      hidden: true,
      align: "right",
      className: "whitespace-nowrap",
      cell: (row) => (
        <>
          <IconButton size="sm" label={`Edit secret ${row.name}`} onClick={() => setEditing(row)}>
            <Pencil />
          </IconButton>
          <IconButton
            size="sm"
            label={`Delete secret ${row.name}`}
            onClick={() => setDeleting(row)}
          >
            <Trash2 />
          </IconButton>
        </>
      ),
    },
  ];
  return (
    <>
      <PageHead
        title="Secrets"
        description="Confidential values for your workspaces: registry passwords, API keys, license files."
        actions={add}
      />
      {list.isPending ? <SkeletonRows rows={3} /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.data ? (
        <DataTable
          label="Secrets"
          data={list.data}
          columns={columns}
          rowKey={(row) => row.id}
          rowTestId={(row) => `secret-${row.name}`}
          empty={
            <Empty
              icon={Lock}
              title="No secrets yet"
              actions={add}
              command={'printf %s "$TOKEN" | coder secret create npm-token --env NPM_TOKEN'}
            >
              A secret is an environment variable or a file in all of your workspaces, from their
              next start. It is stored encrypted and never shown again.
            </Empty>
          }
        />
      ) : null}
      {editing ? (
        <SecretDialog
          key={editing === "new" ? "" : editing.id}
          user={me.id}
          secret={editing === "new" ? null : editing}
          onClose={() => setEditing(null)}
          onSaved={refresh}
        />
      ) : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete secret ${deleting?.name ?? ""}?`}
        confirm="Delete"
        onConfirm={end}
      >
        <p>Workspaces no longer have it after their next start. The value cannot be restored.</p>
      </Confirm>
    </>
  );
}

const shown = (secret: UserSecret | null) => ({
  description: secret?.description ?? "",
  env_name: secret?.env_name ?? "",
  file_path: secret?.file_path ?? "",
  enabled: secret?.enabled ?? true,
});

function SecretDialog({
  user,
  secret,
  onClose,
  onSaved,
}: {
  user: string;
  secret: UserSecret | null;
  onClose: () => void;
  onSaved: () => Promise<void>;
}) {
  const path = `/api/v2/users/${user}/secrets`;
  const own = `${path}/${seg(secret?.name ?? "")}`;
  const conflict = useConflict(
    () => (secret ? get<UserSecret>(own) : Promise.resolve(null)),
    shown,
    shown(secret),
  );
  const form = useForm(
    { name: secret?.name ?? "", value: "", ...shown(secret) },
    conflict.guard(
      async ({
        name,
        value,
        ...rest
      }: { name: string; value: string } & ReturnType<typeof shown>) => {
        if (secret) await patch(own, { ...rest, ...(value === "" ? {} : { value }) });
        else await post(path, { name, value, ...rest });
        await onSaved();
        toast.done(
          `Secret "${name}" saved successfully.`,
          "Workspaces have it after their next start.",
        );
        onClose();
      },
    ),
  );
  const { values, set, problem } = form;
  return (
    <Dialog
      open
      onClose={onClose}
      title={secret ? `Edit ${secret.name}` : "Add secret"}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" form="secret" variant="primary" busy={form.busy}>
            Save
          </Button>
        </>
      }
    >
      <form id="secret" onSubmit={form.submit}>
        <Stack>
          {secret ? (
            <ConflictNotice
              conflict={conflict}
              form={{ ...form, reset: (theirs) => form.reset({ ...values, ...theirs }) }}
            />
          ) : null}
          {form.error && !conflict.theirs ? <Failure error={form.error} /> : null}
          {secret ? null : (
            <TextField
              label="Name"
              required
              placeholder="npm-token"
              value={values.name}
              problem={problem("name")}
              onChange={(value) => set("name", value)}
            />
          )}
          <TextArea
            label="Value"
            rows={3}
            required={!secret}
            spellCheck={false}
            autoComplete="off"
            className="font-mono text-sm"
            value={values.value}
            problem={problem("value")}
            onChange={(value) => set("value", value)}
            hint={
              secret ? "Leave empty to keep the current value." : "The value is not shown again."
            }
          />
          <div className="grid grid-cols-2 gap-4 max-sm:grid-cols-1">
            <TextField
              label="Environment variable"
              placeholder="NPM_TOKEN"
              value={values.env_name}
              problem={problem("env_name")}
              onChange={(value) => set("env_name", value)}
            />
            <TextField
              label="File"
              placeholder="~/.npmrc"
              value={values.file_path}
              problem={problem("file_path")}
              onChange={(value) => set("file_path", value)}
            />
          </div>
          <TextField
            label="Description"
            value={values.description}
            problem={problem("description")}
            onChange={(value) => set("description", value)}
          />
          <Checkbox
            label="Provide to my workspaces"
            checked={values.enabled}
            onChange={(on) => set("enabled", on)}
          />
        </Stack>
      </form>
    </Dialog>
  );
}
