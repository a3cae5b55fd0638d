// "Preview on workspaces": what a version would change in a sample of the template's workspaces,
// before it is published or promoted.
import { FileSearch } from "lucide-react";

import type { Template, TemplateUpdatePreview, UpdatePreview } from "../../../api/types";
import { countedAtStart } from "../../../lib/words";
import { StatusText, type Tone } from "../../../ui/Badge";
import { Button } from "../../../ui/Button";
import { Failure } from "../../../ui/Failure";
import { ChangesView, PlanView } from "./PlanView";
import { DISK_TONES, DISK_WORDS, isOver, usePreview } from "./preview";

export function TemplatePreview({ template, version }: { template: Template; version: string }) {
  const { start, isStarting, error, preview, changes, cancel } = usePreview<TemplateUpdatePreview>(
    `/api/v2/templates/${template.id}/update-preview`,
    { template_version_id: version },
  );
  if (error) return <Failure error={error} retry={start} />;
  if (!preview)
    return (
      <div>
        <Button size="sm" icon={<FileSearch />} busy={isStarting} onClick={start}>
          Preview on workspaces
        </Button>
      </div>
    );
  const over = isOver(preview);
  return (
    <div className="flex flex-col gap-3 text-base" data-testid="template-preview">
      {over ? null : (
        <div role="status" className="flex flex-wrap items-center gap-3">
          <span className="min-w-0 flex-1">
            Terraform is planning the updates, two at once. Nothing is changed.
          </span>
          <Button size="sm" onClick={cancel}>
            Stop preview
          </Button>
        </div>
      )}
      {preview.previews.length === 0 ? (
        <p>No workspace that you may update would change.</p>
      ) : (
        <ul aria-label="Previewed workspaces" className="divide-y divide-line">
          {preview.previews.map((item) => (
            <Row key={item.workspace_id} preview={item} />
          ))}
        </ul>
      )}
      {preview.not_previewed > 0 ? (
        <p className="text-sm text-muted">
          {countedAtStart(preview.not_previewed, "workspace")} not previewed: at most 20 are, and
          only those that you may update.
        </p>
      ) : null}
      {changes ? <ChangesView changes={changes} /> : null}
    </div>
  );
}

function stateOf(preview: UpdatePreview): readonly [Tone, string] {
  if (preview.plan) {
    const { disk } = preview.plan;
    return [DISK_TONES[disk], DISK_WORDS[disk]];
  }
  if (preview.status === "failed") return ["bad", "No plan"];
  if (preview.status === "canceled") return ["idle", "Stopped"];
  return preview.status === "running" ? ["busy", "Planning"] : ["idle", "Queued"];
}

function Row({ preview }: { preview: UpdatePreview }) {
  const [tone, word] = stateOf(preview);
  const head = (
    <span className="inline-flex flex-wrap items-center gap-x-3 gap-y-1">
      <span className="font-medium text-text [overflow-wrap:anywhere]">
        {preview.owner_name}/{preview.workspace_name}
      </span>
      <StatusText tone={tone}>{word}</StatusText>
    </span>
  );
  return (
    <li className="py-2">
      {preview.plan || preview.error ? (
        <details>
          <summary className="cursor-pointer">{head}</summary>
          <div className="mt-2 flex flex-col gap-2">
            {preview.error ? (
              <p className="text-sm whitespace-pre-line [overflow-wrap:anywhere]">
                {preview.error}
              </p>
            ) : null}
            {preview.plan ? <PlanView plan={preview.plan} /> : null}
          </div>
        </details>
      ) : (
        head
      )}
    </li>
  );
}
