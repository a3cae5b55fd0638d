// The builds of a workspace, newest first.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "react-router";

import { workspaceBuilds } from "../../../api/queries/workspaces";
import type { Workspace, WorkspaceBuild } from "../../../api/types";
import { Ago } from "../../../ui/Ago";
import { Dot } from "../../../ui/Badge";
import { Failure } from "../../../ui/Failure";
import { Skeleton } from "../../../ui/Loading";
import { STATUS } from "../../workspaces/status";
import { workspacePath } from "../paths";

export const VERBS: Record<WorkspaceBuild["transition"], string> = { start: "Start", stop: "Stop", delete: "Delete" };

export function BuildHistory({ workspace }: { workspace: Workspace }) {
  const query = workspaceBuilds(workspace.id);
  // A build that began or ended is another list.
  const builds = useQuery({ ...query, queryKey: [...query.queryKey, workspace.latest_build.id, workspace.latest_build.status] });
  const shown = useParams()["number"];
  if (builds.isPending) return <Skeleton className="h-24 w-full" />;
  if (builds.isError) return <Failure error={builds.error} retry={() => void builds.refetch()} />;
  return (
    <ol className="flex flex-col gap-px" aria-label="Builds">
      {builds.data.map((build) => {
        const [word, tone] = STATUS[build.status];
        return (
          <li key={build.id}>
            <Link to={`${workspacePath(workspace)}/builds/${build.build_number}`} aria-current={shown === String(build.build_number) ? "page" : undefined}
              className="flex items-center gap-2.5 rounded-md px-2 py-1.5 hover:bg-hover aria-[current=page]:bg-hover">
              <Dot tone={tone} pulse={build.job.status === "running"} />
              <span className="min-w-0 flex-1">
                <span className="block truncate text-sm"><span className="font-medium">{VERBS[build.transition]}</span> <span className="text-muted">by {build.reason === "autostart" || build.reason === "autostop" ? "schedule" : build.initiator_name}</span><span className="sr-only">, {word}</span></span>
                <span className="block text-xs text-muted [overflow-wrap:anywhere]">#{build.build_number} · {build.template_version_name} · <Ago at={build.created_at} /></span>
              </span>
            </Link>
          </li>
        );
      })}
    </ol>
  );
}
