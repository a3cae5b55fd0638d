// Cancels the pending or running build; on the workspace's page and on the build's page.
import { Ban } from "lucide-react";

import { useWorkspaceRights } from "../../../api/permissions";
import type { Workspace } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { Button } from "../../../ui/Button";
import { BACKWARDS } from "../../../ui/focus/kept-focus";
import { toast } from "../../../ui/toast";
import { isActive } from "../../../features/workspace/status";
import { cancelBuild, useBuildAction } from "./builds";

export function CancelBuild({ workspace }: { workspace: Workspace }) {
  const build = useBuildAction();
  const may = useWorkspaceRights(workspace);
  const owner = useMe().roles.some((role) => role.name === "owner");
  const { id, job, status } = workspace.latest_build;
  // The server's rule: a pending build leaves nothing behind, whatever the template allows for
  // running ones.
  const mayCancel =
    may.update === true &&
    (workspace.template_allow_user_cancel_workspace_jobs || job.status === "pending" || owner);
  if (!isActive(workspace) || !mayCancel) return null;
  const cancel = () =>
    build.mutate(() => cancelBuild(id), {
      onError: (error) => toast.failed("Failed to cancel the build", error),
    });
  return (
    <Button
      icon={<Ban />}
      disabled={status === "canceling"}
      busy={build.isPending}
      onClick={cancel}
      {...BACKWARDS}
    >
      Cancel
    </Button>
  );
}
