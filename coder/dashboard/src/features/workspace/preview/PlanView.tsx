// Terraform's plan against a workspace in plain words, and what differs between two versions.
import type {
  UpdatePreviewResource,
  UpdatePreview,
  UpdatePreviewPlan,
  VersionChanges,
} from "../../../api/types";
import { counted, countedAtStart } from "../../../lib/words";
import { Tag, type Tone } from "../../../ui/Badge";
import { Notice } from "../../../ui/Notice";
import { ACTION_WORDS, DISK_KINDS } from "./preview";

const TONES: Partial<Record<UpdatePreviewResource["action"], Tone>> = {
  create: "good",
  replace: "warn",
  restart: "warn",
  delete: "bad",
};
const CHANGE_WORDS = { added: "Added", removed: "Removed", changed: "Changed" } as const;

export function PlanView({ plan }: { plan: UpdatePreviewPlan }) {
  const [first, ...rest] = plan.summary;
  const changed = plan.resources.filter((resource) => resource.action !== "keep");
  return (
    <>
      <Notice kind={DISK_KINDS[plan.disk]} title={first}>
        {rest.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
      </Notice>
      {changed.length > 0 ? (
        <ul aria-label="Planned changes" className="flex flex-col gap-2">
          {changed.map((resource) => (
            <Resource key={resource.address} resource={resource} />
          ))}
        </ul>
      ) : null}
      {plan.omitted > 0 ? (
        <p className="text-sm text-muted">
          {countedAtStart(plan.omitted, "more resource")} of the plan{" "}
          {plan.omitted > 1 ? "are" : "is"} not shown.
        </p>
      ) : null}
    </>
  );
}

function Resource({ resource }: { resource: UpdatePreviewResource }) {
  return (
    <li className="rounded-lg border border-line px-3 py-2">
      <p className="flex flex-wrap items-center gap-2">
        <Tag tone={TONES[resource.action] ?? "idle"}>{ACTION_WORDS[resource.action]}</Tag>
        <code className="min-w-0 text-sm text-text [overflow-wrap:anywhere]">
          {resource.address}
        </code>
        {resource.disk ? <Tag>Disk</Tag> : null}
      </p>
      {resource.attributes.length > 0 ? (
        <ul className="mt-1 font-mono text-xs text-muted [overflow-wrap:anywhere]">
          {resource.attributes.map((item) => (
            <li key={item.path}>
              {item.path}
              {item.before || item.after ? `: ${item.before || "…"} → ${item.after || "…"}` : null}
              {item.forces_replacement ? " (forces replacement)" : null}
            </li>
          ))}
        </ul>
      ) : null}
    </li>
  );
}

export function ChangesView({ changes }: { changes: VersionChanges }) {
  return (
    <section aria-label="Differences between the versions" className="flex flex-col gap-2">
      <h3 className="font-medium text-text">
        {changes.from_version_name} → {changes.to_version_name}
      </h3>
      {changes.parameters.length > 0 ? (
        <ul aria-label="Parameters" className="text-sm">
          {changes.parameters.map((parameter) => (
            <li key={parameter.name}>
              {CHANGE_WORDS[parameter.change]} parameter <code>{parameter.name}</code>
              {parameter.fields.length > 0 ? ` (${parameter.fields.join(", ")})` : null}
              {parameter.value === null ? null : (
                <>
                  {", value "}
                  <code className="[overflow-wrap:anywhere]">{parameter.value || '""'}</code>
                </>
              )}
              {parameter.required && parameter.change === "added" && parameter.value === null
                ? ", requires a value"
                : null}
            </li>
          ))}
        </ul>
      ) : (
        <p className="text-sm">No parameter changes.</p>
      )}
      <Files changes={changes} />
    </section>
  );
}

function Files({ changes }: { changes: VersionChanges }) {
  if (changes.files === null)
    return (
      <p className="text-sm">
        The template’s files are shown to users who may change the template.
      </p>
    );
  if (changes.files.length === 0) return <p className="text-sm">No file changes.</p>;
  return (
    <div className="flex flex-col gap-1">
      {changes.files.map((file) => (
        <details key={file.path} className="text-sm">
          <summary className="cursor-pointer [overflow-wrap:anywhere]">
            {CHANGE_WORDS[file.change]} <code>{file.path}</code>
          </summary>
          {file.diff ? (
            <pre
              tabIndex={0}
              aria-label={`Differences of ${file.path}`}
              className="mt-1 max-h-72 overflow-auto rounded-lg border border-line bg-inset p-2 font-mono text-xs text-text"
            >
              {file.diff}
            </pre>
          ) : (
            <p className="mt-1">
              No differences to show: the file is not text, is too large to compare, or differs in
              the ends of lines only.
            </p>
          )}
        </details>
      ))}
      {changes.files_omitted > 0 ? (
        <p className="text-sm">And {counted(changes.files_omitted, "more file")}.</p>
      ) : null}
    </div>
  );
}

/** The state of a preview without a plan yet; null once there is one. */
export function progressOf(preview: UpdatePreview): string | null {
  if (preview.status === "running") return "Terraform is planning the update. Nothing is changed.";
  if (preview.status !== "pending") return null;
  const place =
    preview.queue_position > 0 ? ` (${preview.queue_position} of ${preview.queue_size})` : "";
  return `Queued${place}. Builds go first, and two previews run at once.`;
}
