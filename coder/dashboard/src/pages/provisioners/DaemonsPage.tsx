// The provisioners of an organization: status, current job, and load of the machine.
import { useQuery } from "@tanstack/react-query";
import { ServerCog } from "lucide-react";
import { useSearchParams } from "react-router";

import { daemonHealth, daemons } from "../../api/queries/organizations";
import { buildInfo } from "../../api/queries/session";
import type { ProvisionerDaemon, ProvisionerDaemonHealth } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { StatusText, Tag, type Tone } from "../../ui/Badge";
import { Button, ButtonLink } from "../../ui/Button";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SelectField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { PermissionDenied } from "../../ui/PermissionDenied";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";
import { Tags } from "../../features/provisioner/tags";
import { counted } from "../../lib/words";

const STATUS: Readonly<Record<"busy" | "idle" | "offline", readonly [string, Tone]>> = {
  idle: ["Idle", "good"],
  busy: ["Busy", "busy"],
  offline: ["Offline", "warn"],
};
const CHOICES = [
  ["", "All"],
  ["idle", "Idle"],
  ["busy", "Busy"],
  ["offline", "Offline"],
] as const;

export function DaemonsPage() {
  const view = useOrganization();
  useTitle("Provisioners", view?.name ?? "");
  if (!view?.known) return null;
  // Requires the permission to read jobs, as the queue does: reading daemons alone is not enough.
  return view.may.viewJobs ? (
    <Daemons view={view} />
  ) : (
    <PermissionDenied subject="the provisioners of this organization" />
  );
}

function Daemons({ view }: { view: OrganizationView }) {
  const [params, setParams] = useSearchParams();
  const status = params.get("status") ?? "";
  const ids = params.get("ids") ?? "";
  const list = useQuery(
    daemons(view.organization.name, { status: status || undefined, ids: ids || undefined }),
  );
  const health = useQuery(daemonHealth(view.organization.name)).data;
  const version = useQuery(buildInfo).data?.version;
  const columns: Column<ProvisionerDaemon>[] = [
    {
      id: "name",
      header: "Name",
      cell: (daemon) => (
        <div className="min-w-32">
          <p className="font-medium [overflow-wrap:anywhere]">{daemon.name}</p>
          <p className="text-sm text-muted">
            {daemon.version}
            {version && daemon.version !== version ? (
              <>
                {" "}
                <Tag tone="warn" title={`The server runs version ${version}.`}>
                  Version mismatch
                </Tag>
              </>
            ) : null}
          </p>
        </div>
      ),
    },
    {
      id: "status",
      header: "Status",
      cell: (row) => <DaemonState daemon={row} jobs={`${view.home}/provisioner-jobs`} />,
    },
    {
      id: "key",
      header: "Key",
      extra: true,
      cell: (row) => row.key_name ?? <span className="text-muted">-</span>,
    },
    {
      id: "tags",
      header: "Tags",
      extra: true,
      cell: (row) => <Tags tags={row.tags} emptyText="untagged" />,
    },
    {
      id: "machine",
      header: "Machine",
      extra: true,
      cell: (row) => (
        <Machine
          idle={row.status === "idle"}
          health={health?.find((candidate) => candidate.daemon_id === row.id)}
        />
      ),
    },
    {
      id: "seen",
      header: "Last seen",
      extra: true,
      cell: (row) => (
        <span className="whitespace-nowrap text-muted">
          <Ago at={row.last_seen_at} />
        </span>
      ),
    },
  ];
  return (
    <>
      <PageHead
        title="Provisioners"
        description={
          "Provisioners run Terraform. A job goes to a provisioner that has all of its tags; a tagged provisioner " +
          "takes untagged jobs while no untagged one is connected."
        }
        actions={<ButtonLink to={`${view.home}/provisioner-jobs`}>View jobs</ButtonLink>}
      />
      <div className="mb-4 flex flex-wrap items-end gap-3">
        <div className="w-36">
          <SelectField
            label="Status"
            value={status}
            options={CHOICES}
            onChange={(value) => setParams(value ? { status: value } : {}, { replace: true })}
          />
        </div>
        {ids ? (
          <Button onClick={() => setParams({}, { replace: true })}>Show all provisioners</Button>
        ) : null}
      </div>
      {list.isPending ? <SkeletonRows rows={3} /> : null}
      {list.isError ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {list.data !== undefined ? (
        <DataTable
          label="Provisioners"
          data={list.data ?? []}
          columns={columns}
          rowKey={(daemon) => daemon.id}
          rowTestId={(daemon) => `provisioner-${daemon.name}`}
          empty={
            <Empty
              icon={ServerCog}
              title={status || ids ? "No matching provisioners" : "No provisioners connected"}
              command={status || ids ? "" : "coder provisioner start --key <key>"}
              actions={
                view.may.createKeys && !status ? (
                  <ButtonLink variant="primary" to={`${view.home}/provisioner-keys`}>
                    Create key
                  </ButtonLink>
                ) : null
              }
            >
              {status || ids
                ? "Choose another status."
                : "Workspaces cannot be built without a provisioner. Create a key, then start a provisioner with it " +
                  "on a machine that can reach your infrastructure."}
            </Empty>
          }
        />
      ) : null}
    </>
  );
}

function DaemonState({ daemon, jobs }: { daemon: ProvisionerDaemon; jobs: string }) {
  const [text, tone] = STATUS[daemon.status ?? "offline"];
  const job = daemon.current_job ?? daemon.previous_job;
  const jobName = job ? job.template_display_name || job.template_name || "a job" : "";
  return (
    <div>
      <StatusText tone={tone} pulse={daemon.status === "busy"}>
        {text}
      </StatusText>
      {job ? (
        <p className="text-sm text-muted">
          {daemon.current_job ? "running " : `last job: ${job.status}, `}
          <TextLink to={`${jobs}?ids=${job.id}`}>{jobName}</TextLink>
        </p>
      ) : null}
    </div>
  );
}

/** The report may be older than the state: an idle provisioner has no busy slot. */
function Machine({ idle, health }: { idle: boolean; health: ProvisionerDaemonHealth | undefined }) {
  if (!health) return <span className="text-muted">-</span>;
  const parts = [
    health.host?.cpu == null
      ? ""
      : `CPU ${Math.round((100 * health.host.cpu) / Math.max(1, health.host.cores))} %`,
    health.host?.memory_total && health.host.memory_used != null
      ? `memory ${Math.round((100 * health.host.memory_used) / health.host.memory_total)} %`
      : "",
    health.latency_ms == null ? "" : `latency ${Math.round(health.latency_ms)} ms`,
  ].filter(Boolean);
  return (
    <div className="text-sm text-muted">
      <p className="tabular-nums">
        {idle ? 0 : health.slots.busy} of {counted(health.slots.total, "slot")} busy
      </p>
      {parts.length > 0 ? <p className="tabular-nums">{parts.join(", ")}</p> : null}
      {health.problem ? (
        <p className="text-bad [overflow-wrap:anywhere]">{health.problem}</p>
      ) : null}
    </div>
  );
}
