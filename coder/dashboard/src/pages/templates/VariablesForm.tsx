// Values of a template's variables. Sensitive values are never shown again.
import type { TemplateVersionVariable } from "../../api/types";
import { SelectField, TextField } from "../../ui/forms/Field";
import { Tag } from "../../ui/Badge";
import { Stack } from "../../ui/Page";

interface VariablesFormProps {
  variables: readonly TemplateVersionVariable[];
  values: Readonly<Record<string, string>>;
  onChange: (name: string, value: string) => void;
}

export function VariablesForm({ variables, values, onChange }: VariablesFormProps) {
  return (
    <Stack className="gap-5">
      {variables.map((variable) => {
        const label = (
          <span className="inline-flex items-center gap-2">
            <code>{variable.name}</code>
            {variable.sensitive ? <Tag>Sensitive</Tag> : null}
          </span>
        );
        const value = values[variable.name] ?? "";
        const hint = variable.description || undefined;
        return variable.type === "bool" ? (
          <SelectField
            key={variable.name}
            label={label}
            hint={hint}
            value={value}
            onChange={(next) => onChange(variable.name, next)}
            options={[
              ...(variable.required ? [] : [["", "Default"] as const]),
              ["true", "true"],
              ["false", "false"],
            ]}
          />
        ) : (
          <TextField
            key={variable.name}
            label={label}
            hint={hint}
            value={value}
            required={variable.required}
            type={variable.sensitive ? "password" : variable.type === "number" ? "number" : "text"}
            autoComplete="off"
            placeholder={
              variable.sensitive && !variable.required ? "unchanged" : variable.default_value
            }
            onChange={(next) => onChange(variable.name, next)}
          />
        );
      })}
    </Stack>
  );
}

/** The initial values of the form; the server never sends sensitive ones. */
export function startValues(variables: readonly TemplateVersionVariable[]): Record<string, string> {
  return Object.fromEntries(
    variables.map((variable) => [variable.name, variable.sensitive ? "" : variable.value]),
  );
}

/** The request: all values entered. */
export function givenValues(
  values: Readonly<Record<string, string>>,
): { name: string; value: string }[] {
  return Object.entries(values)
    .filter(([, value]) => value !== "")
    .map(([name, value]) => ({ name, value }));
}
