// The job queue of an organization: finished, running and pending jobs, with a one-sentence reason
// for each pending one.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ListChecks } from "lucide-react";
import { useState } from "react";
import { useSearchParams } from "react-router";

import { patch } from "../../api/client";
import { provisionerJobs } from "../../api/queries/organizations";
import { jobReasons } from "../../api/queries/workspaces";
import type { ProvisionerJob } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { StatusText } from "../../ui/Badge";
import { Button, ButtonLink } from "../../ui/Button";
import { Facts } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { cx } from "../../ui/cx";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { DetailsRow, useDetails } from "../../ui/lists/DetailsRow";
import { SelectField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, TextLink } from "../../ui/Page";
import { duration } from "../../lib/time";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";
import { FirstErrors, FirstImportErrors } from "../../features/build/FirstErrors";
import { JobReasons } from "./JobReasons";
import { JOB_TONES, JOB_WORDS, stateOf } from "../../features/provisioner/job-states";
import { cancelPath, jobLink, jobTitle } from "./jobs";
import { Tags } from "../../features/provisioner/tags";

const CHOICES = [
  ["", "All"],
  ...(["pending", "running", "succeeded", "failed", "canceling", "canceled"] as const).map(
    (key) => [key, JOB_WORDS[key]] as const,
  ),
] as const;

export function JobsPage() {
  const view = useOrganization();
  useTitle("Provisioner Jobs", view?.name ?? "");
  if (!view?.known) return null;
  return view.may.viewJobs ? (
    <Jobs view={view} />
  ) : (
    <PermissionDenied subject="the jobs of this organization" />
  );
}

function Jobs({ view }: { view: OrganizationView }) {
  const [params, setParams] = useSearchParams();
  const status = params.get("status") ?? "";
  const ids = params.get("ids") ?? "";
  const list = useQuery(
    provisionerJobs(view.organization.name, { status: status || undefined, ids: ids || undefined }),
  );
  const jobList = list.data ?? [];
  const failures = jobList.filter((job) => stateOf(job) === "failed");
  const explained = new Set(failures.slice(0, EXPLAINED).map((job) => job.id));
  return (
    <>
      <PageHead
        title="Provisioner jobs"
        description="Each workspace build and each template import is a job. Showing the latest 100."
        actions={<ButtonLink to={`${view.home}/provisioners`}>View provisioners</ButtonLink>}
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
          <Button onClick={() => setParams({}, { replace: true })}>Show all jobs</Button>
        ) : null}
      </div>
      {list.isPending ? <SkeletonRows /> : null}
      {list.isError ? (
        <div className="mb-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {list.data !== undefined && jobList.length === 0 ? (
        <div className="rounded-xl border border-line bg-surface">
          <Empty
            icon={ListChecks}
            title={status || ids ? "No matching jobs" : "No jobs yet"}
            actions={status || ids ? null : <ButtonLink to="/templates">View templates</ButtonLink>}
          >
            {status || ids
              ? "Choose another status."
              : "Create a workspace or a template to start the first job."}
          </Empty>
        </div>
      ) : null}
      {jobList.length > 0 ? (
        <ul
          aria-label="Jobs"
          className="divide-y divide-line overflow-hidden rounded-xl border border-line bg-surface shadow-card"
        >
          {jobList.map((job) => (
            <Job
              key={job.id}
              job={job}
              view={view}
              open={ids === job.id}
              reasons={explained.has(job.id)}
            />
          ))}
        </ul>
      ) : null}
    </>
  );
}

/** Newest failed jobs whose log is read for its first error: each is a connection. */
const EXPLAINED = 5;

function Job({
  job,
  view,
  open: first,
  reasons,
}: {
  job: ProvisionerJob;
  view: OrganizationView;
  open: boolean;
  /** Show the first error of its log. */
  reasons: boolean;
}) {
  const details = useDetails(first);
  const state = stateOf(job);
  const title = jobTitle(job);
  const link = jobLink(job, view.organization.name);
  const took =
    job.started_at && job.completed_at
      ? Date.parse(job.completed_at) - Date.parse(job.started_at)
      : null;
  return (
    <DetailsRow
      {...details}
      testId={`job-${job.id}`}
      label={title}
      details={
        <>
          {job.status === "pending" ? (
            <JobReasons organization={view.organization.id} job={job.id} home={view.home} />
          ) : null}
          <Facts
            items={[
              [
                "Required tags",
                <Tags key="tags" tags={job.tags} emptyText="none (any provisioner)" />,
              ],
              ...(job.worker_id && job.worker_name
                ? [
                    [
                      "Provisioner",
                      <TextLink key="worker" to={`${view.home}/provisioners?ids=${job.worker_id}`}>
                        {job.worker_name}
                      </TextLink>,
                    ] as const,
                  ]
                : []),
              ["Template", job.metadata.template_display_name || job.metadata.template_name || "-"],
              ["Version", job.metadata.template_version_name || "-"],
              [
                "Job",
                <code key="id" className="text-sm">
                  {job.id}
                </code>,
              ],
            ]}
          />
          <Cancel job={job} />
        </>
      }
    >
      <Avatar
        name={job.metadata.template_name || job.metadata.template_version_name || title}
        src={job.metadata.template_icon}
        size="sm"
        square
      />
      <div className="flex min-w-0 flex-1 items-start gap-x-3 max-sm:flex-col">
        <div className="min-w-0 flex-1">
          <p className="[overflow-wrap:anywhere]">
            {link ? (
              <TextLink to={link} className="text-text">
                {title}
              </TextLink>
            ) : (
              <span className="font-medium">{title}</span>
            )}
          </p>
          <p className="text-sm text-muted">
            <Ago at={job.created_at} />
            {took === null ? null : <>, took {duration(took)}</>}
            {job.worker_name ? <>, by {job.worker_name}</> : null}
          </p>
          {job.status === "pending" ? (
            <Reason organization={view.organization.id} job={job} />
          ) : null}
          {job.error ? (
            <p
              className={cx(
                "mt-0.5 text-sm [overflow-wrap:anywhere]",
                state === "failed" ? "text-bad" : "text-muted",
              )}
            >
              {job.error}
            </p>
          ) : null}
          {reasons || details.open ? (
            <JobErrors job={job} most={details.open ? undefined : 1} />
          ) : null}
        </div>
        <div className="whitespace-nowrap">
          <StatusText tone={JOB_TONES[state]} pulse={state === "running"}>
            {JOB_WORDS[state]}
          </StatusText>
        </div>
      </div>
    </DetailsRow>
  );
}

/** The first errors of a failed job's log: the job itself often knows only an exit status. */
function JobErrors({ job, most }: { job: ProvisionerJob; most: number | undefined }) {
  const { workspace_build_id: build, template_version_id: version } = job.input;
  const limit = most === undefined ? {} : { most };
  if (stateOf(job) !== "failed") return null;
  if (job.type === "workspace_build" && build) return <FirstErrors build={build} {...limit} />;
  if (job.type === "template_version_import" && version)
    return <FirstImportErrors version={version} {...limit} />;
  return null;
}

function Reason({ organization, job }: { organization: string; job: ProvisionerJob }) {
  const explanation = useQuery(jobReasons(organization, job.id));
  if (!explanation.data) return null;
  return (
    <p data-testid="job-why" className="mt-0.5 text-sm text-warn [overflow-wrap:anywhere]">
      {explanation.data.summary}
    </p>
  );
}

function Cancel({ job }: { job: ProvisionerJob }) {
  const [confirming, setConfirming] = useState(false);
  const queries = useQueryClient();
  const path = cancelPath(job);
  if (path === null || (job.status !== "pending" && job.status !== "running")) return null;
  return (
    <div>
      <Button size="sm" onClick={() => setConfirming(true)}>
        Cancel job…
      </Button>
      <Confirm
        open={confirming}
        onClose={() => setConfirming(false)}
        title="Cancel this job?"
        confirm="Cancel job"
        onConfirm={async () => {
          await patch(path);
          toast.done("The job is being canceled.");
          await queries.invalidateQueries({ queryKey: ["organizations"] });
        }}
      >
        <p>
          {job.status === "pending"
            ? "The job has not started, so nothing is lost."
            : "Terraform is interrupted. Resources it has created may be left behind, and the " +
              "workspace may have to be started or deleted again."}
        </p>
      </Confirm>
    </div>
  );
}
