// Deleting a workspace: the user types its name; a user with the permission can orphan its
// resources.
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
  // Reset the checkbox: a choice from a canceled dialog must not apply to the next one.
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
              "Delete only the record and leave the resources. Use it only if the " +
              "resources are gone, or can no longer be deleted."
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
          ? "The machine itself is not changed. Its connection, history and settings in Coder are deleted."
          : "All of its data and disks are lost. This cannot be undone."}
      </p>
      <p className="text-sm">
        Created <Ago at={workspace.created_at} />, last used <Ago at={workspace.last_used_at} />,
        with {counted(build.resources.length, "resource")}.
      </p>
    </Confirm>
  );
}
