// The builds of a workspace, newest first; older ones on request.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { Link, useParams } from "react-router";

import { workspaceBuilds } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceBuild } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { StatusText } from "../../../ui/Badge";
import { Button } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { Skeleton } from "../../../ui/Loading";
import { JOB_TONES, JOB_WORDS, stateOf } from "../../../features/provisioner/job-states";
import { workspacePath } from "../paths";

export const VERBS: Record<WorkspaceBuild["transition"], string> = {
  start: "Start",
  stop: "Stop",
  delete: "Delete",
};

export function BuildHistory({ workspace }: { workspace: Workspace }) {
  const builds = useInfiniteQuery(workspaceBuilds(workspace.id));
  // A build that started or ended changes the list; the loaded pages stay open.
  const newest = `${workspace.latest_build.id} ${workspace.latest_build.status}`;
  const lastNewest = useRef(newest);
  const { refetch } = builds;
  useEffect(() => {
    if (lastNewest.current === newest) return;
    lastNewest.current = newest;
    void refetch();
  }, [newest, refetch]);
  const shown = useParams()["number"];
  if (builds.isPending) return <Skeleton className="h-24 w-full" />;
  if (builds.isLoadingError)
    return <Failure error={builds.error} retry={() => void builds.refetch()} />;
  // A build that started between two pages shifts the second, which then begins with the last row of
  // the first.
  const all = [...new Map(builds.data.pages.flat().map((build) => [build.id, build])).values()];
  return (
    <>
      <ol className="-mx-2 flex flex-col gap-px" aria-label="Builds">
        {all.map((build) => {
          const status = stateOf(build.job);
          return (
            <li key={build.id}>
              <Link
                to={`${workspacePath(workspace)}/builds/${build.build_number}`}
                aria-current={shown === String(build.build_number) ? "page" : undefined}
                className="block rounded-md px-2 py-1.5 hover:bg-hover aria-[current=page]:bg-hover"
              >
                <span className="flex items-baseline gap-2 text-sm">
                  <span className="min-w-0 flex-1 truncate">
                    <span className="font-medium">{VERBS[build.transition]}</span>{" "}
                    <span className="text-muted">
                      by{" "}
                      {build.reason === "autostart" || build.reason === "autostop"
                        ? "schedule"
                        : build.initiator_name}
                    </span>
                  </span>
                  <span className="shrink-0 text-xs">
                    <StatusText tone={JOB_TONES[status]} pulse={status === "running"} quiet>
                      {JOB_WORDS[status]}
                    </StatusText>
                  </span>
                </span>
                <span className="block text-xs text-muted [overflow-wrap:anywhere]">
                  #{build.build_number}&nbsp;· {build.template_version_name}&nbsp;·{" "}
                  <Ago at={build.created_at} />
                </span>
              </Link>
            </li>
          );
        })}
      </ol>
      {builds.hasNextPage ? (
        <Button
          size="sm"
          variant="quiet"
          className="mt-1"
          busy={builds.isFetchingNextPage}
          onClick={() => void builds.fetchNextPage()}
        >
          Load older builds
        </Button>
      ) : null}
    </>
  );
}
