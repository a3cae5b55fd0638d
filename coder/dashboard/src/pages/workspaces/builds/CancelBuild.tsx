// Ends the build that waits or runs; on the workspace's page and on the build's own.
import { Ban } from "lucide-react";

import { useWorkspaceRights } from "../../../api/permissions";
import type { Workspace } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { Button } from "../../../ui/Button";
import { toast } from "../../../ui/toast";
import { isActive } from "../../../features/workspace/status";
import { cancelBuild, useBuildAction } from "./builds";

export function CancelBuild({ workspace }: { workspace: Workspace }) {
  const build = useBuildAction();
  const may = useWorkspaceRights(workspace);
  const owner = useMe().roles.some((role) => role.name === "owner");
  const { id, job, status } = workspace.latest_build;
  // As the server's rule: a build that waits leaves nothing behind, whatever the template says of those that run.
  const mayCancel =
    may.update === true &&
    (workspace.template_allow_user_cancel_workspace_jobs || job.status === "pending" || owner);
  if (!isActive(workspace) || !mayCancel) return null;
  const cancel = () =>
    build.mutate(() => cancelBuild(id), {
      onError: (error) => toast.failed("The build was not canceled", error),
    });
  return (
    <Button
      icon={<Ban />}
      disabled={status === "canceling"}
      busy={build.isPending}
      onClick={cancel}
    >
      Cancel
    </Button>
  );
}
