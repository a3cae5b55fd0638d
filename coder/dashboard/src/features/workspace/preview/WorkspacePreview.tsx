// "Preview changes" of one workspace, in the dialog that asks before an update.
import { FileSearch } from "lucide-react";

import type { UpdatePreview, Workspace } from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { Notice } from "../../../ui/Notice";
import { ChangesView, PlanView, progressOf } from "./PlanView";
import { usePreview } from "./preview";

export function WorkspacePreview({ workspace }: { workspace: Workspace }) {
  const { start, isStarting, error, preview, changes, cancel } = usePreview<UpdatePreview>(
    `/api/v2/workspaces/${workspace.id}/update-preview`,
    { template_version_id: workspace.template_active_version_id },
  );
  if (error) return <Failure error={error} retry={start} />;
  if (!preview)
    return (
      <div>
        <Button size="sm" icon={<FileSearch />} busy={isStarting} onClick={start}>
          Preview changes
        </Button>
      </div>
    );
  const progress = progressOf(preview);
  return (
    <div className="flex flex-col gap-3" data-testid="update-preview">
      {progress === null ? null : (
        <div role="status" className="flex flex-wrap items-center gap-3">
          <span className="min-w-0 flex-1">{progress}</span>
          <Button size="sm" onClick={cancel}>
            Stop preview
          </Button>
        </div>
      )}
      {preview.status === "canceled" ? <p role="status">The preview was stopped.</p> : null}
      {preview.status === "failed" ? (
        <Notice kind="error" title="There is no plan">
          <p className="whitespace-pre-line [overflow-wrap:anywhere]">{preview.error}</p>
        </Notice>
      ) : null}
      {preview.plan ? <PlanView plan={preview.plan} /> : null}
      {changes ? <ChangesView changes={changes} /> : null}
      {preview.status === "canceled" || preview.status === "failed" ? (
        <div>
          <Button size="sm" busy={isStarting} onClick={start}>
            Preview again
          </Button>
        </div>
      ) : null}
    </div>
  );
}
