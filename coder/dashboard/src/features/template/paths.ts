// Paths of a template's pages. They always include the organization: the shorter address works for
// the default organization only.
import { useParams } from "react-router";

import { seg } from "../../api/client";
import type { Template } from "../../api/types";

/** The search for templates of external machines, and their starter template. */
export const EXTERNAL_TEMPLATES = "has_external_agent:true deprecated:false";
export const EXTERNAL_STARTER = "externally-managed-workspace";
/**
 * Create that template, then open its first workspace: the user wants to attach a machine, not to
 * read files.
 */
export const EXTERNAL_STARTER_PATH = `/templates/new?exampleId=${EXTERNAL_STARTER}&then=workspace`;

export function templatePath(template: Pick<Template, "organization_name" | "name">): string {
  return `/templates/${seg(template.organization_name)}/${seg(template.name)}`;
}

/** The address of this template in the page's own form, so that its menus know the current page. */
export function useTemplateHome(template: Pick<Template, "organization_name" | "name">): string {
  return useParams()["organization"] === undefined
    ? `/templates/${seg(template.name)}`
    : templatePath(template);
}
