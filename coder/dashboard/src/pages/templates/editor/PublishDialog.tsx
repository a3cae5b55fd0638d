// Publishing a version: its name, its message, and whether it becomes the active one.
import { useQuery } from "@tanstack/react-query";

import { get, patch, seg } from "../../../api/client";
import { templateRollouts, templateVersion } from "../../../api/queries/templates";
import type { Template, TemplateVersion } from "../../../api/types";
import { Button, buttonClass } from "../../../ui/Button";
import { Dialog } from "../../../ui/Dialog";
import { Failure } from "../../../ui/Failure";
import { ConflictError, useConflict } from "../../../ui/forms/conflict";
import { Checkbox } from "../../../ui/forms/Toggle";
import { TextArea, TextField } from "../../../ui/forms/Field";
import { useForm } from "../../../ui/forms/form";
import { Notice } from "../../../ui/Notice";
import { templatePath } from "../../../features/template/paths";
import { TemplatePreview } from "../../../features/workspace/preview/TemplatePreview";
import { isOpen, reachOf } from "../rollout/rollout";

interface PublishProps {
  template: Template;
  version: TemplateVersion;
  /** The active version when editing began. */
  active: string;
  onClose: () => void;
  onDone: (name: string) => Promise<void>;
}

interface Publication {
  name: string;
  message: string;
  active: boolean;
}

export function Publish({ template, version, active, onClose, onDone }: PublishProps) {
  const conflict = useConflict(
    () => get<Template>(`/api/v2/templates/${template.id}`),
    (current) => ({ version: current.active_version_id }),
    { version: active },
  );
  const send = async (values: Publication) => {
    if (values.name !== version.name || values.message !== version.message)
      await patch(`/api/v2/templateversions/${version.id}`, {
        name: values.name,
        message: values.message,
      });
    if (values.active) await patch(`/api/v2/templates/${template.id}/versions`, { id: version.id });
    await onDone(values.name);
  };
  // A version that is not promoted replaces no active version.
  const form = useForm<Publication>(
    { name: version.name, message: version.message, active: true },
    (values) => (values.active ? conflict.guard(send)(values) : send(values)),
  );
  const rollout = useQuery(templateRollouts(template.id)).data?.find(isOpen);
  return (
    <Dialog
      open
      onClose={onClose}
      title="Publish new version"
      description="Users see the version’s name and message."
    >
      <form className="flex flex-col gap-4" onSubmit={form.submit}>
        {conflict.theirs ? (
          <ConcurrentPromotion
            template={template}
            version={conflict.theirs.version}
            onPublishAnyway={() => {
              conflict.overwrite();
              form.submit();
            }}
          />
        ) : null}
        {form.error && !(form.error instanceof ConflictError) ? (
          <Failure error={form.error} />
        ) : null}
        <TextField
          label="Version name"
          required
          value={form.values.name}
          problem={form.problem("name")}
          onChange={(value) => form.set("name", value)}
        />
        <TextArea
          label="Message"
          rows={3}
          value={form.values.message}
          problem={form.problem("message")}
          placeholder="Describe the changes"
          onChange={(value) => form.set("message", value)}
        />
        <Checkbox
          label="Promote to active version"
          hint="New workspaces use this version; existing ones are marked outdated."
          checked={form.values.active}
          onChange={(on) => form.set("active", on)}
        />
        {rollout && form.values.active ? (
          <Notice
            kind="info"
            title={`Publishing ends the rollout of ${rollout.template_version_name}`}
          >
            It has reached {reachOf(rollout)}. The promoted version becomes the active one for all
            workspaces.
          </Notice>
        ) : null}
        <TemplatePreview template={template} version={version.id} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" busy={form.busy}>
            Publish
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Another user promoted a version first: show it, and offer the options. */
function ConcurrentPromotion({
  template,
  version,
  onPublishAnyway,
}: {
  template: Template;
  version: string;
  onPublishAnyway: () => void;
}) {
  const theirs = useQuery(templateVersion(version)).data;
  return (
    <Notice
      kind="warning"
      title="Another version became active while you were editing"
      actions={
        <>
          <Button size="sm" onClick={onPublishAnyway}>
            Publish anyway
          </Button>
          {theirs ? (
            <a
              className={buttonClass("secondary", "sm")}
              href={`${templatePath(template)}/versions/${seg(theirs.name)}`}
              target="_blank"
              rel="noreferrer"
            >
              View changes
            </a>
          ) : null}
        </>
      }
    >
      {theirs ? (
        <p>
          <strong>{theirs.name}</strong>, by {theirs.created_by.username}
          {theirs.message ? `: ${theirs.message}` : ""}.{" "}
        </p>
      ) : null}
      <p>Your version has not been published and does not include those changes.</p>
    </Notice>
  );
}
