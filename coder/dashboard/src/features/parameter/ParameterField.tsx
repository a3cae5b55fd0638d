// A parameter, in the form type that the template's author chose.
import { lazy, Suspense } from "react";

import type { PreviewParameter } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { Combobox } from "../../ui/forms/Combobox";
import { ButtonCheckbox, Switch } from "../../ui/forms/Toggle";
import { RadioCards } from "../../ui/forms/RadioCards";
import { TextArea, TextField } from "../../ui/forms/Field";
import { Notice } from "../../ui/Notice";
import { problemOf } from "./dynamic-parameters";
import { optionIcon, choices, type ControlProps } from "./control";
import { MultiSelect, TagSelect } from "./ListControls";
import { Slider } from "./Slider";

const Markdown = lazy(() => import("../../ui/text/Markdown"));

interface ParameterFieldProps {
  parameter: PreviewParameter;
  value: string;
  onChange: (value: string) => void;
  /** The reason why it cannot be changed; "" if it can. */
  locked?: string;
  fromPreset?: boolean;
}

export function ParameterField({
  parameter,
  value,
  onChange,
  locked = "",
  fromPreset = false,
}: ParameterFieldProps) {
  const findings = parameter.diagnostics.map((item) => ({
    error: item.severity === "error",
    ...problemOf(item),
  }));
  const problem = findings
    .filter(({ error }) => error)
    .map(({ title, detail }) => (detail ? `${title}: ${detail}` : title))
    .join("\n");
  return (
    <div data-testid={`parameter-field-${parameter.name}`} className="flex flex-col gap-1.5">
      <Control
        parameter={parameter}
        value={value}
        onChange={onChange}
        disabled={locked !== "" || parameter.styling.disabled === true}
        problem={problem || undefined}
        tags={
          <>
            {fromPreset ? <Tag tone="accent">Preset</Tag> : null}
            {parameter.ephemeral ? <Tag title="Used for one build only.">Ephemeral</Tag> : null}
            {!parameter.mutable && !parameter.ephemeral ? (
              <Tag title="Cannot be changed after the workspace is created.">Immutable</Tag>
            ) : null}
          </>
        }
      />
      {locked ? <p className="text-sm text-muted">{locked}</p> : null}
      {findings
        .filter(({ error }) => !error)
        .map(({ title, detail }, index) => (
          <Notice key={index} kind="warning" title={title}>
            {detail || null}
          </Notice>
        ))}
    </div>
  );
}

function Control({ parameter, value, onChange, disabled, problem, tags }: ControlProps) {
  const name = parameter.display_name || parameter.name;
  const label = (
    <span className="inline-flex flex-wrap items-center gap-2 align-middle">
      {parameter.icon ? <Avatar name={name} src={parameter.icon} size="xs" square /> : null}
      {name}
      {tags}
    </span>
  );
  const hint = parameter.description ? (
    <Suspense fallback={parameter.description}>
      <Markdown text={parameter.description} inline />
    </Suspense>
  ) : null;
  const bool = value === "true";
  const placeholder = parameter.styling.placeholder ?? "";
  switch (parameter.form_type) {
    case "checkbox":
      return (
        <ButtonCheckbox
          label={label}
          hint={hint}
          problem={problem}
          checked={bool}
          disabled={disabled}
          onChange={(on) => onChange(String(on))}
        />
      );
    case "switch":
      return (
        <Switch
          label={label}
          hint={hint}
          problem={problem}
          checked={bool}
          disabled={disabled}
          onChange={(on) => onChange(String(on))}
        />
      );
    case "radio":
      return (
        <RadioCards
          label={name}
          heading={label}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          options={parameter.options.map((option) => ({
            value: option.value.value,
            text: option.name,
            hint: option.description,
            icon: optionIcon(option),
            disabled,
          }))}
        />
      );
    case "dropdown":
      return (
        <Combobox
          label={label}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          disabled={disabled}
          required={parameter.required}
          placeholder={placeholder || "Select an option"}
          options={choices(parameter)}
        />
      );
    case "multi-select":
      return (
        <MultiSelect
          label={label}
          name={name}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          disabled={disabled}
          parameter={parameter}
        />
      );
    case "tag-select":
      return (
        <TagSelect
          label={label}
          name={name}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          disabled={disabled}
          placeholder={placeholder}
        />
      );
    case "slider":
      return (
        <Slider
          label={label}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          disabled={disabled}
          parameter={parameter}
        />
      );
    case "textarea":
      return (
        <TextArea
          label={label}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          disabled={disabled}
          required={parameter.required}
          placeholder={placeholder}
          rows={5}
        />
      );
    case "error":
      return (
        <Notice kind="error" title={`${name} cannot be displayed`}>
          {problem || "The template’s author has to fix this parameter."}
        </Notice>
      );
    default:
      return (
        <TextField
          label={label}
          hint={hint}
          problem={problem}
          value={value}
          onChange={onChange}
          disabled={disabled}
          required={parameter.required}
          placeholder={placeholder}
          autoComplete="off"
          type={
            parameter.styling.mask_input
              ? "password"
              : parameter.type === "number"
                ? "number"
                : "text"
          }
        />
      );
  }
}
