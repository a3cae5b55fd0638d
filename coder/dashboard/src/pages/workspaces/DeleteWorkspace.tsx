// Deleting a workspace: the name is typed; somebody who may can leave its resources behind.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { useChecks } from "../../api/permissions";
import type { Workspace } from "../../api/types";
import { Confirm } from "../../ui/Confirm";
import { Checkbox } from "../../ui/forms/Toggle";
import { Ago } from "../../ui/Ago";
import { toast } from "../../ui/toast";
import { startBuild } from "./builds/builds";
import { counted } from "../../lib/words";

export function DeleteWorkspace({
  workspace,
  open,
  onClose,
  onDeleted,
}: {
  workspace: Workspace;
  open: boolean;
  onClose: () => void;
  onDeleted?: () => void;
}) {
  const queries = useQueryClient();
  const [orphan, setOrphan] = useState(false);
  const may = useChecks(
    ["template-update", workspace.template_id],
    open
      ? {
          orphan: {
            object: {
              resource_type: "template",
              resource_id: workspace.template_id,
              organization_id: workspace.organization_id,
            },
            action: "update",
          },
        }
      : null,
  );
  const build = workspace.latest_build;
  // What was ticked for a question that was not answered is no answer to the next.
  useEffect(() => {
    if (!open) setOrphan(false);
  }, [open]);
  return (
    <Confirm
      open={open}
      onClose={onClose}
      title={`Delete ${workspace.name}?`}
      confirm="Delete workspace"
      typed={workspace.name}
      typedLabel="Workspace name"
      extra={
        may.orphan ? (
          <Checkbox
            label="Orphan resources"
            hint={
              "Forget the workspace and leave what it is made of as it is. Only for one whose " +
              "resources are gone already, or can no longer be deleted."
            }
            checked={orphan}
            onChange={setOrphan}
            testId="orphan-checkbox"
          />
        ) : null
      }
      onConfirm={async () => {
        await startBuild(workspace.id, "delete", orphan ? { orphan: true } : {});
        toast.done(`${workspace.name} is being deleted.`);
        await queries.invalidateQueries({ queryKey: ["workspaces"] });
        await queries.invalidateQueries({ queryKey: ["workspace"] });
        onDeleted?.();
      }}
    >
      <p>
        {build.has_external_agent
          ? "The machine itself stays as it is. Its connection, its history and its settings here are lost."
          : "Everything in it is lost, its disks too. This cannot be undone."}
      </p>
      <p className="text-sm">
        Made <Ago at={workspace.created_at} />, last used <Ago at={workspace.last_used_at} />, with{" "}
        {counted(build.resources.length, "resource")}.
      </p>
    </Confirm>
  );
}
