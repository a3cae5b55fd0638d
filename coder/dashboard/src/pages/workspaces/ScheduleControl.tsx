// The deadline of a running workspace, and changing it by an hour.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Clock, Minus, Plus } from "lucide-react";
import { Link } from "react-router";

import { put } from "../../api/client";
import type { Workspace } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { IconButton } from "../../ui/Button";
import { dateTime } from "../../lib/time";
import { toast } from "../../ui/toast";
import { workspacePath } from "./paths";

const HOUR_MS = 3_600_000;

export function ScheduleControl({
  workspace,
  allowed,
}: {
  workspace: Workspace;
  allowed: boolean;
}) {
  const queries = useQueryClient();
  const { deadline, max_deadline: latest, status } = workspace.latest_build;
  const extend = useMutation({
    mutationFn: (to: Date) =>
      put(`/api/v2/workspaces/${workspace.id}/extend`, { deadline: to.toISOString() }),
    onError: (error) => toast.failed("Failed to change the deadline", error),
    onSettled: () =>
      Promise.all([
        queries.invalidateQueries({ queryKey: ["workspace"] }),
        queries.invalidateQueries({ queryKey: ["workspaces"] }),
      ]),
  });
  const settings = `${workspacePath(workspace)}/settings/schedule`;
  if (status !== "running" || !deadline) {
    return (
      <p className="text-sm text-muted">
        {workspace.autostart_schedule ? (
          <>
            Autostart
            {workspace.next_start_at ? (
              <>
                {" "}
                <Ago at={workspace.next_start_at} />
              </>
            ) : null}
            .{" "}
          </>
        ) : status === "running" ? (
          "Autostop is off. "
        ) : (
          "Autostart is off. "
        )}
        <Link className="text-accent-text underline underline-offset-2" to={settings}>
          Schedule
        </Link>
      </p>
    );
  }
  const end = Date.parse(deadline);
  const shift = (ms: number) => extend.mutate(new Date(end + ms));
  const least = Date.now() + HOUR_MS / 2;
  return (
    <div className="flex items-center gap-1.5">
      <Clock className="size-4 text-muted" aria-hidden="true" />
      <Link
        className="flex-1 text-sm hover:underline"
        to={settings}
        title={dateTime(deadline)}
        data-testid="schedule-controls-autostop"
      >
        Stops <Ago at={deadline} />
      </Link>
      {allowed ? (
        <>
          <IconButton
            size="sm"
            label="Subtract 1 hour from deadline"
            disabled={extend.isPending || end - HOUR_MS < least}
            onClick={() => shift(-HOUR_MS)}
          >
            <Minus />
          </IconButton>
          <IconButton
            size="sm"
            label="Add 1 hour to deadline"
            disabled={extend.isPending || Boolean(latest && end + HOUR_MS > Date.parse(latest))}
            onClick={() => shift(HOUR_MS)}
          >
            <Plus />
          </IconButton>
        </>
      ) : null}
    </div>
  );
}
