// The third step of the template builder: values of the base and of each module. Submitting composes
// the template; the server's validations appear at their fields.
import type {
  TemplateBuilderBase,
  TemplateBuilderModule,
  TemplateBuilderModuleVariable,
} from "../../../api/types";
import { Button } from "../../../ui/Button";
import { Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { TextArea, TextField } from "../../../ui/forms/Field";
import { useForm, type Form } from "../../../ui/forms/form";
import { Checkbox } from "../../../ui/forms/Toggle";
import { Stack } from "../../../ui/Page";
import {
  baseField,
  compose,
  moduleField,
  placeholderOf,
  requestOf,
  startValues,
  type Values,
} from "./composition";
import type { ArchiveFile } from "../tar";

interface ParametersStepProps {
  base: TemplateBuilderBase;
  chosen: readonly TemplateBuilderModule[];
  entered: Values;
  onBack: (values: Values) => void;
  onComposed: (values: Values, files: readonly ArchiveFile[]) => void;
}

export function ParametersStep({ base, chosen, entered, onBack, onComposed }: ParametersStepProps) {
  const form = useForm(startValues(base, chosen, entered), async (values) => {
    onComposed(values, await compose(requestOf(base, chosen, values)));
  });
  const asked = chosen.filter((module) => module.variables.length > 0);
  return (
    <form onSubmit={form.submit}>
      <Stack>
        {form.error ? <Failure error={form.error} /> : null}
        {base.variables.length === 0 && asked.length === 0 ? (
          <p className="text-muted">The base and the modules that you chose ask for nothing.</p>
        ) : null}
        {base.variables.length > 0 ? (
          <Section title={base.name}>
            <Questions variables={base.variables} field={baseField} form={form} />
          </Section>
        ) : null}
        {asked.map((module) => (
          <Section key={module.id} title={module.display_name}>
            <Questions
              variables={module.variables}
              field={(name) => moduleField(module.id, name)}
              form={form}
            />
          </Section>
        ))}
        <div className="flex flex-wrap justify-end gap-2">
          <Button disabled={form.busy} onClick={() => onBack(form.values)}>
            Back
          </Button>
          <Button type="submit" variant="primary" busy={form.busy}>
            Review Terraform
          </Button>
        </div>
      </Stack>
    </form>
  );
}

function Questions({
  variables,
  field,
  form,
}: {
  variables: readonly TemplateBuilderModuleVariable[];
  field: (name: string) => string;
  form: Form<Record<string, string>>;
}) {
  // Required values first; the others keep the order of the Terraform.
  const sorted = [...variables].sort((a, b) => Number(b.required) - Number(a.required));
  return (
    <Stack>
      {sorted.map((variable) => {
        const name = field(variable.name);
        const value = form.values[name] ?? "";
        const problem = form.problem(name);
        const hint = variable.description || undefined;
        const label = <code>{variable.name}</code>;
        if (variable.type === "bool")
          return (
            <div key={name} className="flex flex-col gap-1">
              <Checkbox
                label={label}
                hint={hint}
                checked={value === "true"}
                onChange={(on) => form.set(name, String(on))}
              />
              {problem ? (
                <p role="alert" className="text-sm text-bad">
                  {problem}
                </p>
              ) : null}
            </div>
          );
        const shared = {
          label,
          hint,
          problem,
          value,
          required: variable.required,
          placeholder: placeholderOf(variable),
          onChange: (next: string) => form.set(name, next),
        };
        return /script$/.test(variable.name) ? (
          <TextArea key={name} {...shared} rows={5} className="font-mono" spellCheck={false} />
        ) : (
          <TextField
            key={name}
            {...shared}
            type={variable.sensitive ? "password" : "text"}
            inputMode={variable.type === "number" ? "decimal" : "text"}
            autoComplete="off"
          />
        );
      })}
    </Stack>
  );
}
