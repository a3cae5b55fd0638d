// Devices with the stock WireGuard app (phones, routers) that connect to workspaces through the
// server.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Smartphone, Trash2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";

import { remove } from "../../../api/client";
import { wireguardClients, wireguardServer } from "../../../api/queries/account";
import type { WireguardClient } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { Ago } from "../../../ui/Ago";
import { StatusText } from "../../../ui/Badge";
import { Button, IconButton } from "../../../ui/Button";
import { Card } from "../../../ui/Card";
import { Confirm } from "../../../ui/Confirm";
import { Empty } from "../../../ui/Empty";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { CopyButton } from "../../../ui/text/CodeBox";
import { bytesText, targetName } from "./wireguard";
import { counted } from "../../../lib/words";

const AddDevice = lazy(() => import("./AddDevice"));
const ALIVE_MS = 180_000; // WireGuard renews the keys of a live tunnel every two minutes

export function DevicesPage() {
  useTitle("Settings");
  const me = useMe();
  const queries = useQueryClient();
  const server = useQuery(wireguardServer);
  const clients = useQuery({ ...wireguardClients(me.id), enabled: server.data !== undefined });
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<WireguardClient | null>(null);
  const refresh = () => queries.invalidateQueries({ queryKey: wireguardClients(me.id).queryKey });
  const end = async () => {
    if (!removing) return;
    await remove(`/api/v2/users/${me.id}/wireguard-clients/${removing.id}`);
    await refresh();
    toast.done(`Device "${removing.name}" removed successfully.`);
  };
  const on = server.data?.enabled === true;
  const add = (
    <Button variant="primary" icon={<Plus />} onClick={() => setAdding(true)}>
      Add device
    </Button>
  );
  return (
    <>
      <PageHead
        title="WireGuard devices"
        description="Phones, tablets and routers connect to your workspaces with the standard WireGuard app."
        actions={on && (clients.data?.length ?? 0) > 0 ? add : null}
      />
      {server.isPending || (on && clients.isPending) ? <SkeletonRows rows={2} /> : null}
      {server.isError ? <Failure error={server.error} retry={() => void server.refetch()} /> : null}
      {clients.isError ? (
        <Failure error={clients.error} retry={() => void clients.refetch()} />
      ) : null}
      {server.data && !on ? (
        <Notice kind="info" title="WireGuard devices are disabled">
          An administrator can enable them with <code>coder server --wireguard-address :51820</code>{" "}
          and by opening this UDP port to the internet.
        </Notice>
      ) : null}
      {on && clients.data?.length === 0 ? (
        <Card>
          <Empty
            icon={Smartphone}
            title="No devices yet"
            actions={add}
            command="coder wireguard add phone --expires 30d"
          >
            Add a device and scan its code with the WireGuard app. SSH, web pages and all ports of
            your workspaces then work on that device.
          </Empty>
        </Card>
      ) : null}
      <Stack>
        {clients.data?.map((client) => (
          <Device key={client.id} client={client} onRemove={() => setRemoving(client)} />
        ))}
      </Stack>
      {adding && server.data ? (
        <Suspense fallback={null}>
          <AddDevice user={me.id} onClose={() => setAdding(false)} onAdded={refresh} />
        </Suspense>
      ) : null}
      <Confirm
        open={removing !== null}
        onClose={() => setRemoving(null)}
        title={`Remove ${removing?.name ?? ""}?`}
        confirm="Remove"
        onConfirm={end}
      >
        <p>
          It disconnects within a second, and its configuration stops working for good. To use the
          device again, add it as a new device.
        </p>
      </Confirm>
    </>
  );
}

function Device({ client, onRemove }: { client: WireguardClient; onRemove: () => void }) {
  const lastHandshake = client.last_handshake_at ? Date.parse(client.last_handshake_at) : 0;
  const alive = lastHandshake > 0 && Date.now() - lastHandshake < ALIVE_MS;
  return (
    <Card
      className="px-5 py-4"
      role="article"
      aria-label={client.name}
      data-testid={`device-${client.name}`}
    >
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-52">
          <h2 className="text-lg font-semibold">{client.name}</h2>
          <p className="text-sm text-muted">
            Added <Ago at={client.created_at} />,{" "}
            {client.expires_at ? (
              <>
                {client.status === "expired" ? "expired" : "expires"} <Ago at={client.expires_at} />
              </>
            ) : (
              "does not expire"
            )}
          </p>
        </div>
        {client.status === "expired" ? (
          <StatusText tone="bad">Expired</StatusText>
        ) : alive ? (
          <StatusText tone="good">Connected</StatusText>
        ) : (
          <StatusText tone="idle">
            {lastHandshake > 0 ? "Disconnected" : "Never connected"}
          </StatusText>
        )}
        <IconButton label={`Remove ${client.name}`} onClick={onRemove}>
          <Trash2 />
        </IconButton>
      </div>
      <dl className="mt-3 flex flex-wrap gap-x-8 gap-y-2 text-sm">
        <div>
          <dt className="text-muted">Last handshake</dt>
          <dd>
            {lastHandshake > 0 ? <Ago at={client.last_handshake_at} /> : "never"}
            {client.endpoint ? ` at ${client.endpoint}` : ""}
          </dd>
        </div>
        <div>
          <dt className="text-muted">Received / sent</dt>
          <dd>
            {bytesText(client.rx_bytes)} / {bytesText(client.tx_bytes)}
          </dd>
        </div>
        <div>
          <dt className="text-muted">Device address</dt>
          <dd>
            <code className="[overflow-wrap:anywhere]">{client.address}</code>
          </dd>
        </div>
        <div>
          <dt className="text-muted">Access</dt>
          <dd>
            {client.workspace_ids
              ? counted(client.workspace_ids.length, "selected workspace")
              : "all workspaces you have access to"}
          </dd>
        </div>
      </dl>
      {client.targets.length > 0 ? (
        <details className="mt-3 text-sm">
          <summary className="font-medium text-accent-text">
            Addresses of {counted(client.targets.length, "agent")}
          </summary>
          <ul className="mt-2 flex flex-col gap-1">
            {client.targets.map((target) => (
              <li key={target.agent_id} className="flex flex-wrap items-center gap-2">
                <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
                  {targetName(target)}
                </span>
                <code className="[overflow-wrap:anywhere]">{target.address}</code>
                <CopyButton
                  text={target.address}
                  iconOnly
                  label={`Copy address of ${targetName(target)}`}
                />
              </li>
            ))}
          </ul>
        </details>
      ) : null}
    </Card>
  );
}
