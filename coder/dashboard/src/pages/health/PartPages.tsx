// The results of each check.
import { CheckCircle2, CircleX } from "lucide-react";

import type { ProvisionerDaemonsReportItem } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Tags } from "../../features/provisioner/tags";
import { StatusText } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { Facts, Section } from "../../ui/Card";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { useReport } from "./HealthLayout";
import { SectionPage } from "./SectionPage";

export function YesNo({ yes, text }: { yes: boolean | null | undefined; text?: string }) {
  if (yes === null || yes === undefined) return <span className="text-muted">-</span>;
  return (
    <span className="inline-flex items-center gap-1.5 align-top">
      {yes ? (
        <CheckCircle2 className="size-4 text-good" aria-hidden="true" />
      ) : (
        <CircleX className="size-4 text-idle" aria-hidden="true" />
      )}
      {text ?? (yes ? "Yes" : "No")}
    </span>
  );
}

export function AccessUrlPage() {
  const { access_url: part } = useReport();
  return (
    <SectionPage part="access_url">
      <Section title="Details">
        <Facts
          items={[
            [
              "Access URL",
              <a key="a" className="text-accent-text hover:underline" href={part.access_url}>
                {part.access_url}
              </a>,
            ],
            ["Reachable from the server", <YesNo key="r" yes={part.reachable} />],
            [
              "/healthz response",
              <code key="h" className="text-sm">
                {part.healthz_response || "none"}
              </code>,
            ],
            ["Status code", part.status_code === 0 ? "none" : String(part.status_code)],
          ]}
        />
      </Section>
    </SectionPage>
  );
}

export function DatabasePage() {
  const { database: part } = useReport();
  return (
    <SectionPage part="database">
      <Section title="Details">
        <Facts
          items={[
            ["Reachable", <YesNo key="r" yes={part.reachable} />],
            ["Latency", part.reachable ? `${part.latency_ms} ms` : "-"],
            ["Warning threshold", `${part.threshold_ms} ms`],
          ]}
        />
      </Section>
    </SectionPage>
  );
}

export function WebsocketPage() {
  const { websocket: part } = useReport();
  return (
    <SectionPage part="websocket">
      <Section title="Details">
        <Facts
          items={[
            [
              "Handshake status",
              part.code === 101 ? "101, switched to WebSocket" : String(part.code || "none"),
            ],
            ...(part.body
              ? [
                  [
                    "Response received",
                    <code key="b" className="text-sm">
                      {part.body}
                    </code>,
                  ] as const,
                ]
              : []),
          ]}
        />
      </Section>
    </SectionPage>
  );
}

interface ProxyRow {
  id: string;
  name: string;
  display_name: string;
  path_app_url: string;
  version: string;
  healthy: boolean;
  status?: {
    status: string;
    checked_at: string;
    report?: { errors: string[] | null; warnings: string[] | null };
  };
}

export function WorkspaceProxyHealthPage() {
  const { workspace_proxy: part } = useReport();
  const rows = (part.workspace_proxies as { regions?: ProxyRow[] } | null)?.regions ?? [];
  const columns: Column<ProxyRow>[] = [
    {
      id: "name",
      header: "Proxy",
      cell: (row) => (
        <div>
          <p className="font-medium">{row.display_name || row.name}</p>
          <p className="text-sm text-muted [overflow-wrap:anywhere]">{row.path_app_url}</p>
        </div>
      ),
    },
    {
      id: "status",
      header: "Status",
      cell: (row) => (
        <div>
          <StatusText tone={row.healthy ? "good" : "bad"}>
            {row.healthy ? "Healthy" : (row.status?.status ?? "unknown")}
          </StatusText>
          {[...(row.status?.report?.errors ?? []), ...(row.status?.report?.warnings ?? [])].map(
            (line) => (
              <p key={line} className="text-sm text-muted">
                {line}
              </p>
            ),
          )}
        </div>
      ),
    },
    {
      id: "version",
      header: "Version",
      extra: true,
      cell: (row) => row.version || "this server’s",
    },
    {
      id: "checked",
      header: "Checked",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <Ago at={row.status?.checked_at} />
        </span>
      ),
    },
  ];
  return (
    <SectionPage part="workspace_proxy">
      <DataTable
        label="Workspace proxies"
        data={rows}
        columns={columns}
        rowKey={(row) => row.id}
        empty={
          <Empty title="No workspace proxies">
            Users connect to their workspaces through this server only.
          </Empty>
        }
      />
      <div>
        <ButtonLink to="/deployment/workspace-proxies">Manage workspace proxies</ButtonLink>
      </div>
    </SectionPage>
  );
}

export function ProvisionerDaemonsPage() {
  const { provisioner_daemons: part } = useReport();
  const columns: Column<ProvisionerDaemonsReportItem>[] = [
    {
      id: "name",
      header: "Provisioner",
      cell: (row) => (
        <div>
          <p className="font-medium">{row.provisioner_daemon.name}</p>
          {row.warnings.map((warning) => (
            <p key={warning.code + warning.message} className="text-sm text-warn">
              {warning.message}
            </p>
          ))}
        </div>
      ),
    },
    {
      id: "tags",
      header: "Tags",
      cell: (row) => <Tags tags={row.provisioner_daemon.tags} emptyText="untagged" />,
    },
    {
      id: "version",
      header: "Version",
      extra: true,
      cell: (row) =>
        `${row.provisioner_daemon.version} (API ${row.provisioner_daemon.api_version})`,
    },
    {
      id: "seen",
      header: "Last seen",
      extra: true,
      cell: (row) => (
        <span className="text-muted">
          <Ago at={row.provisioner_daemon.last_seen_at ?? null} />
        </span>
      ),
    },
  ];
  return (
    <SectionPage part="provisioner_daemons">
      <DataTable
        label="Provisioners seen"
        data={part.items}
        columns={columns}
        rowKey={(row) => row.provisioner_daemon.id}
        empty={
          <Empty title="No provisioner is connected" command="coder provisioner start">
            Builds wait until a provisioner connects.
          </Empty>
        }
      />
    </SectionPage>
  );
}
