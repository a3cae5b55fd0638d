// External authentication providers: those that are configured, and how to add another.
import { useQuery } from "@tanstack/react-query";
import { GitBranch } from "lucide-react";

import { usePermissions } from "../../api/permissions";
import { deploymentConfig } from "../../api/queries/deployment";
import type { ExternalAuthConfig } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { CodeBox } from "../../ui/text/CodeBox";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";

const COLUMNS: Column<ExternalAuthConfig>[] = [
  {
    id: "id",
    header: "Provider",
    cell: (provider) => (
      <div className="flex min-w-40 items-center gap-3">
        <Avatar name={provider.display_name || provider.id} src={provider.display_icon} square />
        <div className="min-w-0">
          <TextLink to={`/external-auth/${encodeURIComponent(provider.id)}`} className="text-text">
            {provider.display_name || provider.id}
          </TextLink>
          <p className="text-sm text-muted [overflow-wrap:anywhere]">
            {provider.id}, {provider.type}
          </p>
        </div>
      </div>
    ),
  },
  {
    id: "client",
    header: "Client ID",
    extra: true,
    cell: (row) => <code className="text-sm [overflow-wrap:anywhere]">{row.client_id}</code>,
  },
  {
    id: "match",
    header: "Git addresses",
    extra: true,
    cell: (row) =>
      row.regex ? (
        <code className="text-sm [overflow-wrap:anywhere]">{row.regex}</code>
      ) : (
        <span className="text-muted">None</span>
      ),
  },
  {
    id: "flow",
    header: "Flow",
    cell: (row) => <Tag>{row.device_flow ? "Device code" : "Browser"}</Tag>,
  },
];
const EXAMPLE =
  "CODER_EXTERNAL_AUTH_0_ID=github\nCODER_EXTERNAL_AUTH_0_TYPE=github\n" +
  "CODER_EXTERNAL_AUTH_0_CLIENT_ID=…\nCODER_EXTERNAL_AUTH_0_CLIENT_SECRET=…";

export function ExternalAuthListPage() {
  useTitle("External Authentication Settings");
  const may = usePermissions();
  const config = useQuery({ ...deploymentConfig, enabled: may.viewDeploymentConfig });
  if (may.known && !may.viewDeploymentConfig)
    return <PermissionDenied subject="the deployment's settings" />;
  const providers = config.data?.config.external_auth ?? [];
  return (
    <>
      <PageHead
        title="External authentication"
        description="Git hosts and other providers whose accounts users can link for their workspaces."
      />
      {config.isPending ? <SkeletonRows rows={2} /> : null}
      {config.isError ? <Failure error={config.error} retry={() => void config.refetch()} /> : null}
      {config.data ? (
        <DataTable
          label="Providers"
          data={providers}
          columns={COLUMNS}
          rowKey={(provider) => provider.id}
          empty={
            <Empty icon={GitBranch} title="No providers have been configured">
              Register an OAuth application at the Git host, then start the server with its client
              ID and secret.
            </Empty>
          }
        />
      ) : null}
      <div className="mt-4">
        <p className="mb-1.5 text-sm text-muted">
          Configure providers in the server’s environment: the first with CODER_EXTERNAL_AUTH_0_…,
          the second with CODER_EXTERNAL_AUTH_1_…. The callback URL is{" "}
          <code className="[overflow-wrap:anywhere]">
            {window.location.origin}/external-auth/&lt;id&gt;/callback
          </code>
          .
        </p>
        <CodeBox label="Server environment" command={EXAMPLE} />
      </div>
    </>
  );
}
