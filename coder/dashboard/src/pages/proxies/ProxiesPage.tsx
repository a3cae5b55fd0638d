// Workspace proxies: the status of each, and its latency from this browser.
import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { Globe2, Plus, Trash2 } from "lucide-react";
import { useState } from "react";

import { PRIMARY } from "../../api/app-base";
import { remove, seg } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { workspaceProxies } from "../../api/queries/health";
import type { WorkspaceProxy } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { StatusText, type Tone } from "../../ui/Badge";
import { Button, IconButton } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { CreateProxy } from "./CreateProxy";
import { latencyTone, measure } from "../../features/proxy/latency";
import { Hint } from "../../ui/Hint";

const STATUS: Record<string, readonly [Tone, string]> = {
  ok: ["good", "Healthy"],
  unhealthy: ["warn", "Unhealthy"],
  unreachable: ["bad", "Unreachable"],
  unregistered: ["idle", "Never connected"],
};
const AGAIN_MS = 30_000;

export function ProxiesPage() {
  useTitle("Workspace Proxies");
  const may = usePermissions();
  const queries = useQueryClient();
  const proxies = useQuery({ ...workspaceProxies, enabled: may.viewWorkspaceProxies });
  const list = proxies.data ?? [];
  const latencies = useQueries({
    queries: list.map((proxy) => ({
      queryKey: ["latency", proxy.path_app_url],
      queryFn: () => measure(proxy.path_app_url),
      enabled: proxy.path_app_url !== "",
      refetchInterval: AGAIN_MS,
    })),
  });
  const latency = new Map(list.map((proxy, index) => [proxy.id, latencies[index]?.data]));
  const [adding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState<WorkspaceProxy | null>(null);
  const refresh = () => queries.invalidateQueries({ queryKey: workspaceProxies.queryKey });
  const end = async () => {
    if (!deleting) return;
    await remove(`/api/v2/workspaceproxies/${seg(deleting.name)}`);
    await refresh();
    toast.done(`Proxy ${deleting.name} deleted successfully.`);
  };
  const columns: Column<WorkspaceProxy>[] = [
    {
      id: "icon",
      header: "Icon",
      hidden: true,
      className: "w-12",
      cell: (row) => <Avatar name={row.display_name || row.name} src={row.icon_url} square />,
    },
    {
      id: "name",
      header: "Proxy",
      className: "name",
      cell: (row) => (
        <>
          <span className="font-medium">{row.display_name || row.name}</span>
          {row.name === PRIMARY ? <p className="text-sm text-muted">This server</p> : null}
        </>
      ),
    },
    {
      id: "url",
      header: "URL",
      extra: true,
      className: "url [overflow-wrap:anywhere]",
      cell: (row) => row.path_app_url || "not registered",
    },
    {
      id: "status",
      header: "Status",
      className: "status",
      cell: (row) => {
        const [tone, text] = STATUS[row.status?.status ?? ""] ??
          (row.healthy ? STATUS["ok"] : STATUS["unhealthy"]) ?? ["idle", "Unknown"];
        return (
          <div>
            <StatusText tone={tone} block>
              {text}
            </StatusText>
            {(row.status?.report?.errors ?? []).map((line) => (
              <p key={line} className="text-sm text-bad">
                {line}
              </p>
            ))}
          </div>
        );
      },
    },
    {
      id: "latency",
      header: "Latency",
      extra: true,
      cell: (row) => <Latency ms={latency.get(row.id)} />,
    },
    {
      id: "version",
      header: "Version",
      extra: true,
      cell: (row) => <span className="text-muted">{row.version || "-"}</span>,
    },
    {
      id: "end",
      header: "Actions",
      hidden: true,
      align: "right",
      cell: (row) =>
        row.name !== PRIMARY && may.editWorkspaceProxies ? (
          <IconButton size="sm" label={`Delete proxy ${row.name}`} onClick={() => setDeleting(row)}>
            <Trash2 />
          </IconButton>
        ) : null,
    },
  ];
  const add = may.editWorkspaceProxies ? (
    <Button variant="primary" icon={<Plus />} onClick={() => setAdding(true)}>
      Create proxy
    </Button>
  ) : null;
  if (may.known && !may.viewWorkspaceProxies)
    return <PermissionDenied subject="the workspace proxies" />;
  return (
    <>
      <PageHead
        title="Workspace proxies"
        description="A proxy close to distant users lowers the latency of their terminals and applications."
        actions={list.length > 1 ? add : null}
      />
      {proxies.isPending ? <SkeletonRows rows={2} /> : null}
      {proxies.isError ? (
        <Failure error={proxies.error} retry={() => void proxies.refetch()} />
      ) : null}
      {proxies.data ? (
        <Stack>
          <DataTable
            label="Workspace proxies"
            data={list}
            columns={columns}
            rowKey={(row) => row.id}
            rowTestId={(row) => row.name}
          />
          {list.length <= 1 ? (
            <Card>
              <Empty icon={Globe2} title="No workspace proxies yet" actions={add} level={2}>
                Add a proxy for users on another continent. It needs a machine with the Coder
                binary, but no database.
              </Empty>
            </Card>
          ) : null}
        </Stack>
      ) : null}
      {adding ? <CreateProxy onClose={() => setAdding(false)} onMade={refresh} /> : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete proxy ${deleting?.name ?? ""}?`}
        confirm="Delete"
        typed={deleting?.name}
        onConfirm={end}
      >
        <p>
          Its token is revoked, and its users are served by another region. Application links with
          its URL stop working.
        </p>
      </Confirm>
    </>
  );
}

function Latency({ ms }: { ms: number | null | undefined }) {
  if (ms === undefined) return <span className="text-muted">…</span>;
  if (ms === null)
    return (
      <Hint
        className="text-muted"
        text="Latency unknown: this browser cannot reach the proxy, or blocks it because it uses HTTP."
      >
        -
      </Hint>
    );
  return <StatusText tone={latencyTone(ms)}>{Math.max(1, Math.round(ms))} ms</StatusText>;
}
