// Where a template's pages are. The organization is named always: the shorter address is for the default one alone.
import { seg } from "../../api/client";
import type { Template } from "../../api/types";

export function templatePath(template: Pick<Template, "organization_name" | "name">): string {
  return `/templates/${seg(template.organization_name)}/${seg(template.name)}`;
}
