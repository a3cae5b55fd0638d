// Provisioner keys: created here, shown once, and deleted.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useState } from "react";

import { post, remove, seg } from "../../api/client";
import { keyDaemons } from "../../api/queries/organizations";
import type { CreateProvisionerKeyResponse, ProvisionerKeyDaemons } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Button, IconButton } from "../../ui/Button";
import { CodeBox } from "../../ui/text/CodeBox";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Dialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { FormDialog } from "../../ui/forms/FormDialog";
import { useForm } from "../../ui/forms/form";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";
import { readTags, Tags } from "../../features/provisioner/tags";
import { counted } from "../../lib/words";

/** Ways to authenticate that are no real keys, but are listed with them. */
const BUILT_IN: Readonly<Record<string, string>> = {
  "built-in": "Provisioners that run inside the server.",
  "user-auth": "Provisioners started by a signed-in user.",
  psk: "Provisioners that use the server's pre-shared key.",
};
const isBuiltIn = (entry: ProvisionerKeyDaemons) =>
  entry.key.id.startsWith("00000000-0000-0000-0000-");

export function KeysPage() {
  const view = useOrganization();
  useTitle("Provisioner Keys", view?.name ?? "");
  if (!view?.known) return null;
  return view.may.viewDaemons ? (
    <Keys view={view} />
  ) : (
    <PermissionDenied subject="the provisioner keys of this organization" />
  );
}

function Keys({ view }: { view: OrganizationView }) {
  const list = useQuery(keyDaemons(view.organization.name));
  const queries = useQueryClient();
  const [making, setMaking] = useState(false);
  const [deleting, setDeleting] = useState<ProvisionerKeyDaemons | null>(null);
  const changed = () =>
    queries.invalidateQueries({
      queryKey: ["organizations", view.organization.name, "provisionerkeys"],
    });
  const shown = (list.data ?? []).filter((entry) => !isBuiltIn(entry) || entry.daemons.length > 0);
  const columns: Column<ProvisionerKeyDaemons>[] = [
    {
      id: "name",
      header: "Name",
      cell: (entry) => (
        <div className="min-w-32">
          <p className="font-medium [overflow-wrap:anywhere]">{entry.key.name}</p>
          {isBuiltIn(entry) ? (
            <p className="text-sm text-muted">{BUILT_IN[entry.key.name]}</p>
          ) : null}
        </div>
      ),
    },
    {
      id: "tags",
      header: "Tags",
      extra: true,
      cell: (row) =>
        isBuiltIn(row) ? (
          <span className="text-sm text-muted">set by each provisioner</span>
        ) : (
          <Tags tags={row.key.tags} emptyText="untagged" />
        ),
    },
    {
      id: "daemons",
      header: "Provisioners",
      cell: (entry) =>
        entry.daemons.length === 0 ? (
          <span className="text-muted">None connected</span>
        ) : (
          <TextLink
            to={`${view.home}/provisioners?ids=${entry.daemons.map((daemon) => daemon.id).join(",")}`}
          >
            {counted(entry.daemons.length, "provisioner")}
          </TextLink>
        ),
    },
    {
      id: "made",
      header: "Created",
      extra: true,
      cell: (row) => (
        <span className="text-muted">{isBuiltIn(row) ? "-" : <Ago at={row.key.created_at} />}</span>
      ),
    },
    {
      id: "actions",
      header: "Actions",
      hidden: true,
      align: "right",
      cell: (entry) =>
        view.may.deleteKeys && !isBuiltIn(entry) ? (
          <IconButton
            size="sm"
            label={`Delete key ${entry.key.name}`}
            onClick={() => setDeleting(entry)}
          >
            <Trash2 />
          </IconButton>
        ) : null,
    },
  ];
  return (
    <>
      <PageHead
        title="Provisioner keys"
        description="A provisioner started with a key belongs to this organization and has the key's tags."
        actions={
          view.may.createKeys ? (
            <Button variant="primary" icon={<Plus />} onClick={() => setMaking(true)}>
              Create key
            </Button>
          ) : null
        }
      />
      {list.isPending ? <SkeletonRows rows={3} /> : null}
      {list.isError ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {list.data ? (
        <DataTable
          label="Provisioner keys"
          data={shown}
          columns={columns}
          rowKey={(entry) => entry.key.id}
          rowTestId={(entry) => `key-${entry.key.name}`}
          empty={
            <Empty
              icon={KeyRound}
              title="No keys yet"
              command="coder provisioner keys create my-key --tag os=linux"
            >
              Create a key to let a provisioner outside the server run jobs of this organization.
            </Empty>
          }
        />
      ) : null}
      {making ? <NewKey view={view} onClose={() => setMaking(false)} onMade={changed} /> : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete key ${deleting?.key.name ?? ""}?`}
        confirm="Delete"
        typed={deleting?.key.name}
        typedLabel="Name of the provisioner key to delete"
        onConfirm={async () => {
          await remove(
            `/api/v2/organizations/${view.organization.name}/provisionerkeys/${seg(deleting?.key.name ?? "")}`,
          );
          toast.done("Provisioner key deleted successfully.");
          await changed();
        }}
      >
        <p>
          {deleting && deleting.daemons.length > 0
            ? `${counted(deleting.daemons.length, "connected provisioner uses", "connected provisioners use")} it and ` +
              "will be disconnected: jobs that require its tags wait for another provisioner."
            : "No connected provisioner uses it. Provisioners started with it later are rejected."}
        </p>
      </Confirm>
    </>
  );
}

function NewKey({
  view,
  onClose,
  onMade,
}: {
  view: OrganizationView;
  onClose: () => void;
  onMade: () => Promise<unknown>;
}) {
  const [key, setKey] = useState("");
  const form = useForm(
    { name: "", tags: "" },
    async (values) => {
      const created = await post<CreateProvisionerKeyResponse>(
        `/api/v2/organizations/${view.organization.name}/provisionerkeys`,
        { name: values.name, tags: readTags(values.tags) ?? {} },
      );
      toast.done(`Provisioner key "${values.name}" created successfully.`);
      setKey(created.key);
      await onMade();
    },
    (values) => (readTags(values.tags) === null ? { tags: "Enter each tag as name=value." } : {}),
  );
  if (key) {
    return (
      <Dialog
        open
        held
        onClose={onClose}
        title="Provisioner key created"
        description="Copy the key now. It is not shown again."
        actions={
          <Button variant="primary" onClick={onClose}>
            Done
          </Button>
        }
      >
        <div className="flex flex-col gap-4">
          <CodeBox label="Provisioner key" command={key} secret testId="provisioner-key" />
          <div>
            <p className="mb-1.5">Start a provisioner with it:</p>
            <CodeBox
              label="Command that starts a provisioner"
              command={`CODER_PROVISIONER_DAEMON_KEY="<key>" coder provisioner start --url ${window.location.origin}`}
            />
          </div>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog title="Create provisioner key" form={form} submit="Create key" onClose={onClose}>
      <TextField
        label="Name"
        required
        autoComplete="off"
        value={form.values.name}
        problem={form.problem("name")}
        onChange={(value) => form.set("name", value)}
      />
      <TextField
        label="Tags"
        autoComplete="off"
        placeholder="os=linux gpu=yes"
        hint="Jobs that require these tags go to its provisioners. Tags cannot be changed later."
        value={form.values.tags}
        problem={form.problem("tags")}
        onChange={(value) => form.set("tags", value)}
      />
    </FormDialog>
  );
}
