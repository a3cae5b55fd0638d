// A job in words, and its link.
import type { ProvisionerJob } from "../../api/types";

type Job = Pick<ProvisionerJob, "id" | "type" | "metadata" | "input">;

const VERBS = { start: "Start", stop: "Stop", delete: "Delete" } as const;

export function jobTitle({ type, metadata }: Pick<Job, "type" | "metadata">): string {
  const template = metadata.template_display_name || metadata.template_name;
  switch (type) {
    case "workspace_build":
      return (
        `${metadata.workspace_build_transition ? VERBS[metadata.workspace_build_transition] : "Build"} ` +
        `workspace ${metadata.workspace_name ?? ""}`
      ).trim();
    case "template_version_import":
      return template ? `Import a version of ${template}` : "Import a new template";
    case "template_version_dry_run":
      return `Dry-run a version of ${template || "a template"}`;
  }
}

/** The job's template; null before it exists. */
export function jobLink(
  { type, metadata }: Pick<Job, "type" | "metadata">,
  organization: string,
): string | null {
  if (!metadata.template_name) return null;
  const home = `/templates/${encodeURIComponent(organization)}/${encodeURIComponent(metadata.template_name)}`;
  return type === "workspace_build"
    ? `/workspaces?filter=${encodeURIComponent(`name:"${metadata.workspace_name ?? ""}"`)}`
    : `${home}/versions`;
}

/** The address that cancels it; null if it cannot be canceled. */
export function cancelPath({ id, type, input }: Pick<Job, "id" | "type" | "input">): string | null {
  if (type === "workspace_build" && input.workspace_build_id)
    return `/api/v2/workspacebuilds/${input.workspace_build_id}/cancel`;
  if (type === "template_version_import" && input.template_version_id)
    return `/api/v2/templateversions/${input.template_version_id}/cancel`;
  if (type === "template_version_dry_run" && input.template_version_id)
    return `/api/v2/templateversions/${input.template_version_id}/dry-run/${id}/cancel`;
  return null;
}
