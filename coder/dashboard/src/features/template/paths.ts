// Where a template's pages are. The organization is named always: the shorter address is for the default one alone.
import { useParams } from "react-router";

import { seg } from "../../api/client";
import type { Template } from "../../api/types";

/** What finds templates whose workspaces are machines somebody already has, and the starter template for those. */
export const ATTACHING = "has_external_agent:true deprecated:false";
export const EXTERNAL_STARTER = "externally-managed-workspace";
/** Makes that template, then leads to its first workspace: whoever wants a machine does not want to look at files. */
export const ATTACHING_STARTER = `/templates/new?exampleId=${EXTERNAL_STARTER}&then=workspace`;

export function templatePath(template: Pick<Template, "organization_name" | "name">): string {
  return `/templates/${seg(template.organization_name)}/${seg(template.name)}`;
}

/** The address of this template as the page's own has it, so that its menus know which page is shown. */
export function useTemplateHome(template: Pick<Template, "organization_name" | "name">): string {
  return useParams()["organization"] === undefined
    ? `/templates/${seg(template.name)}`
    : templatePath(template);
}
