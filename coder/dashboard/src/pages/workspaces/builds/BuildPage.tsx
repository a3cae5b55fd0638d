// A build: its details, its log by stage, and its timings.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "react-router";

import { ApiError } from "../../../api/client";
import { buildByNumber, jobReasons } from "../../../api/queries/workspaces";
import type { Workspace } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { StatusText } from "../../../ui/Badge";
import { Facts, Section } from "../../../ui/Card";
import { buttonClass } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead, Stack } from "../../../ui/Page";
import { duration } from "../../../lib/time";
import { useTitle } from "../../../ui/title";
import { NotFoundPage } from "../../../ui/NotFoundPage";
import { BuildHistory, VERBS } from "./BuildHistory";
import { BuildLog } from "../../../features/build/BuildLog";
import { CancelBuild } from "./CancelBuild";
import { FirstErrors } from "../../../features/build/FirstErrors";
import { JOB_TONES, JOB_WORDS, stateOf } from "../../../features/provisioner/job-states";
import { WaitingNotice } from "../../../features/provisioner/WaitingNotice";
import { workspacePath } from "../paths";
import { Timings } from "./Timings";
import { useWorkspace } from "../useWorkspace";

export function BuildPage() {
  const { workspace, view } = useWorkspace();
  return workspace ? <Loaded workspace={workspace} /> : view;
}

function Loaded({ workspace }: { workspace: Workspace }) {
  const number = useParams()["number"] ?? "";
  useTitle(`Build #${number} · ${workspace.name}`);
  const query = buildByNumber(workspace.owner_name, workspace.name, number);
  const live = number === String(workspace.latest_build.build_number);
  // Refetched while it progresses; the data of this build stays meanwhile, with its log and the
  // focus.
  const answer = useQuery({
    ...query,
    queryKey: [...query.queryKey, live ? workspace.latest_build.status : ""],
    placeholderData: (cached) =>
      cached && String(cached.build_number) === number ? cached : undefined,
  });
  const build = answer.data;
  const state = build ? stateOf(build.job) : null;
  const job = live ? workspace.latest_build.job : build?.job; // live updates its queue position
  // A build names its provisioner by id; the job details name it.
  const worker = useQuery({
    ...jobReasons(workspace.organization_id, build?.job.id ?? ""),
    enabled: build?.job.worker_id !== undefined,
    refetchInterval: false,
  }).data?.worker_name;
  if (answer.error instanceof ApiError && answer.error.status === 404) return <NotFoundPage />;
  const home = workspacePath(workspace);
  return (
    <>
      <PageHead
        title={`Build #${number}`}
        crumbs={[
          ["Workspaces", "/workspaces"],
          [workspace.owner_name],
          [workspace.name, home],
          [`Build #${number}`],
        ]}
        badge={
          state ? (
            <StatusText tone={JOB_TONES[state]} pulse={state === "running"}>
              {JOB_WORDS[state]}
            </StatusText>
          ) : null
        }
        actions={
          build ? (
            <>
              {live ? <CancelBuild workspace={workspace} /> : null}
              <a
                className={buttonClass()}
                href={`/api/v2/workspacebuilds/${build.id}/logs?format=text`}
                target="_blank"
                rel="noreferrer"
              >
                Raw log
              </a>
            </>
          ) : null
        }
      />
      {answer.isPending ? <SkeletonRows rows={3} /> : null}
      {answer.isError ? <Failure error={answer.error} retry={() => void answer.refetch()} /> : null}
      <div className="grid grid-cols-[minmax(0,1fr)_17rem] items-start gap-6 max-lg:grid-cols-1">
        {build ? (
          <Stack>
            {job?.status === "pending" ? (
              <WaitingNotice organization={workspace.organization_id} job={job} />
            ) : null}
            {build.job.error ? (
              <Notice
                kind={state === "canceled" ? "warning" : "error"}
                title={state === "canceled" ? "This build was canceled" : "This build failed"}
              >
                <p>{build.job.error}</p>
                <FirstErrors build={build.id} />
              </Notice>
            ) : null}
            <Section title="Build details">
              <Facts
                items={[
                  ["Action", VERBS[build.transition]],
                  [
                    "Started by",
                    `${build.initiator_name}${build.reason === "initiator" ? "" : ` (${build.reason})`}`,
                  ],
                  ["Version", build.template_version_name],
                  ["Started", <Ago key="begun" at={build.created_at} />],
                  [
                    "Duration",
                    build.job.started_at && build.job.completed_at
                      ? duration(
                          Date.parse(build.job.completed_at) - Date.parse(build.job.started_at),
                        )
                      : "-",
                  ],
                  ["Provisioner", build.job.worker_name || worker || "-"],
                ]}
              />
            </Section>
            <BuildLog key={build.id} build={build.id} height="60vh" steady />
            <Section title="Timings">
              <Timings build={build.id} />
            </Section>
          </Stack>
        ) : (
          <div />
        )}
        <aside>
          <h2 className="mb-1.5 text-sm font-medium text-muted">Builds</h2>
          <BuildHistory workspace={workspace} />
        </aside>
      </div>
    </>
  );
}
