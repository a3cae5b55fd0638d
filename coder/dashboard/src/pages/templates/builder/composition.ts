// What the user chose in the template builder, and the files that the server composes of it.
import { postForBytes } from "../../../api/client";
import type {
  TemplateBuilderBase,
  TemplateBuilderComposeRequest,
  TemplateBuilderModule,
  TemplateBuilderModuleVariable,
} from "../../../api/types";
import { readTar, type ArchiveFile } from "../tar";

/** Values by the name that the server gives their field in its validations. */
export type Values = Readonly<Record<string, string>>;

export const baseField = (variable: string) => `base_variable_values.${variable}`;
export const moduleField = (module: string, variable: string) => `modules.${module}.${variable}`;

/** What a cleared field stands for; undefined without a default. */
export const placeholderOf = ({ default: value }: TemplateBuilderModuleVariable) =>
  value === undefined || value === null || value === "" ? undefined : String(value);

/** The form's first value: the default as text; a switch is off without one. */
function startValue(variable: TemplateBuilderModuleVariable): string {
  if (variable.default !== undefined) return String(variable.default);
  return variable.type === "bool" ? "false" : "";
}

/** A value for every question: the one entered before, or the default. */
export function startValues(
  base: TemplateBuilderBase,
  modules: readonly TemplateBuilderModule[],
  entered: Values,
): Record<string, string> {
  const fields = [
    ...base.variables.map((item) => [baseField(item.name), startValue(item)] as const),
    ...modules.flatMap((module) =>
      module.variables.map(
        (item) => [moduleField(module.id, item.name), startValue(item)] as const,
      ),
    ),
  ];
  return Object.fromEntries(fields.map(([name, value]) => [name, entered[name] ?? value]));
}

/**
 * Only what differs from the defaults: the composed Terraform repeats no default. A cleared field is not given: its
 * placeholder shows the default, and an empty image or region is of no use.
 */
function changed(
  variables: readonly TemplateBuilderModuleVariable[],
  field: (name: string) => string,
  values: Values,
): Record<string, string> {
  return Object.fromEntries(
    variables
      .map((item) => [item.name, values[field(item.name)] ?? "", startValue(item)] as const)
      .filter(([, value, start]) => value !== "" && value !== start)
      .map(([name, value]) => [name, value]),
  );
}

export function requestOf(
  base: TemplateBuilderBase,
  modules: readonly TemplateBuilderModule[],
  values: Values,
): TemplateBuilderComposeRequest {
  return {
    base_template_id: base.id,
    base_variable_values: changed(base.variables, baseField, values),
    modules: modules.map((module) => ({
      id: module.id,
      variables: changed(module.variables, (name) => moduleField(module.id, name), values),
    })),
  };
}

export async function compose(body: TemplateBuilderComposeRequest): Promise<ArchiveFile[]> {
  return readTar(await postForBytes("/api/v2/templatebuilder/compose", body));
}

/** The chosen module that rules this one out; undefined for none. */
export function conflictOf(
  module: TemplateBuilderModule,
  chosen: readonly TemplateBuilderModule[],
): TemplateBuilderModule | undefined {
  return chosen.find(
    (other) =>
      other.id !== module.id &&
      (other.conflicts_with.includes(module.id) || module.conflicts_with.includes(other.id)),
  );
}

/** Modules by category, in the order in which the categories first appear. */
export function byCategory(
  modules: readonly TemplateBuilderModule[],
): (readonly [category: string, modules: TemplateBuilderModule[]])[] {
  const groups = new Map<string, TemplateBuilderModule[]>();
  for (const module of modules) {
    const group = groups.get(module.category) ?? [];
    groups.set(module.category, [...group, module]);
  }
  return [...groups];
}
