// One parameter, in the form its template's author chose for it.
import { X } from "lucide-react";
import { lazy, Suspense, useId, useState, type ReactNode } from "react";

import type { PreviewParameter, PreviewParameterOption } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { IconButton } from "../../ui/Button";
import { Combobox } from "../../ui/forms/Combobox";
import {
  Checkbox,
  describedBy,
  Field,
  INPUT,
  RadioCards,
  Switch,
  TextArea,
  TextField,
} from "../../ui/forms/Field";
import { keyOf } from "../../ui/keys";
import { Notice } from "../../ui/Notice";
import { problemOf } from "./dynamic-parameters";
import { readList, writeList } from "./list-value";

const Markdown = lazy(() => import("../../ui/text/Markdown"));

interface ParameterFieldProps {
  parameter: PreviewParameter;
  value: string;
  onChange: (value: string) => void;
  /** Why it cannot be changed; "" for it can. */
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
  return (
    <div data-testid={`parameter-field-${parameter.name}`} className="flex flex-col gap-1.5">
      <Control
        parameter={parameter}
        value={value}
        onChange={onChange}
        disabled={locked !== "" || parameter.styling.disabled === true}
        tags={
          <>
            {fromPreset ? <Tag tone="accent">Preset</Tag> : null}
            {parameter.ephemeral ? (
              <Tag title="Used for one build and then forgotten.">Ephemeral</Tag>
            ) : null}
            {!parameter.mutable && !parameter.ephemeral ? (
              <Tag title="Cannot be changed after the workspace is created.">Immutable</Tag>
            ) : null}
          </>
        }
      />
      {locked ? <p className="text-sm text-muted">{locked}</p> : null}
      {parameter.diagnostics
        .map((item) => ({ severity: item.severity, ...problemOf(item) }))
        .map(({ severity, title, detail }, index) => (
          <Notice key={index} kind={severity === "error" ? "error" : "warning"} title={title}>
            {detail || null}
          </Notice>
        ))}
    </div>
  );
}

interface ControlProps {
  parameter: PreviewParameter;
  value: string;
  onChange: (value: string) => void;
  disabled: boolean;
  tags: ReactNode;
}

function Control({ parameter, value, onChange, disabled, tags }: ControlProps) {
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
        <Checkbox
          label={label}
          hint={hint}
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
          checked={bool}
          disabled={disabled}
          onChange={(on) => onChange(String(on))}
        />
      );
    case "radio":
      return (
        <div className="flex flex-col gap-1">
          <RadioCards
            label={name}
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
          <div className="flex flex-wrap items-center gap-2 text-sm text-muted">
            {tags}
            {hint}
          </div>
        </div>
      );
    case "dropdown":
      return (
        <Combobox
          label={label}
          hint={hint}
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
        <Notice kind="error" title={`${name} cannot be shown`}>
          The template’s author has to mend this parameter.
        </Notice>
      );
    default:
      return (
        <TextField
          label={label}
          hint={hint}
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

function optionIcon(option: PreviewParameterOption): ReactNode {
  return option.icon ? <Avatar name={option.name} src={option.icon} size="xs" square /> : undefined;
}

function choices(parameter: PreviewParameter) {
  return parameter.options.map((option) => ({
    value: option.value.value,
    text: option.name,
    hint: option.description || undefined,
    icon: optionIcon(option),
  }));
}

type ListProps = Omit<ControlProps, "tags" | "parameter"> & {
  label: ReactNode;
  name: string;
  hint: ReactNode;
};

function MultiSelect({
  label,
  name,
  hint,
  value,
  onChange,
  disabled,
  parameter,
}: ListProps & { parameter: PreviewParameter }) {
  const chosen = readList(value);
  const rest = choices(parameter).filter((option) => !chosen.includes(option.value));
  const textOf = (item: string) =>
    parameter.options.find((option) => option.value.value === item)?.name ?? item;
  return (
    <div className="flex flex-col gap-1.5">
      <Combobox
        label={label}
        hint={hint}
        value=""
        placeholder={chosen.length === 0 ? "Select any number" : "Add another"}
        disabled={disabled || rest.length === 0}
        options={rest}
        onChange={(item) => onChange(writeList([...chosen, item]))}
      />
      <Chips
        name={name}
        items={chosen.map((item) => [item, textOf(item)])}
        disabled={disabled}
        onRemove={(item) => onChange(writeList(chosen.filter((other) => other !== item)))}
      />
    </div>
  );
}

function TagSelect({
  label,
  name,
  hint,
  value,
  onChange,
  disabled,
  placeholder,
}: ListProps & { placeholder: string }) {
  const [text, setText] = useState("");
  const items = readList(value);
  const id = useId();
  const add = () => {
    const item = text.trim();
    if (item !== "" && !items.includes(item)) onChange(writeList([...items, item]));
    setText("");
  };
  return (
    <div className="flex flex-col gap-1.5">
      <Field id={id} label={label} hint={hint}>
        <input
          id={id}
          className={`${INPUT} h-8.5`}
          value={text}
          disabled={disabled}
          placeholder={placeholder || "Type and press Enter"}
          aria-describedby={describedBy(id, hint, undefined)}
          onChange={(event) => setText(event.target.value)}
          onBlur={add}
          onKeyDown={(event) => {
            const key = keyOf(event);
            if (key === "Enter" || key === ",") {
              event.preventDefault();
              add();
            }
            if (key === "Backspace" && text === "" && items.length > 0)
              onChange(writeList(items.slice(0, -1)));
          }}
        />
      </Field>
      <Chips
        name={name}
        items={items.map((item) => [item, item])}
        disabled={disabled}
        onRemove={(item) => onChange(writeList(items.filter((other) => other !== item)))}
      />
    </div>
  );
}

function Chips({
  name,
  items,
  disabled,
  onRemove,
}: {
  name: string;
  items: readonly (readonly [string, string])[];
  disabled: boolean;
  onRemove: (item: string) => void;
}) {
  if (items.length === 0) return null;
  return (
    <ul aria-label={`Chosen for ${name}`} className="flex flex-wrap gap-1.5">
      {items.map(([item, text]) => (
        <li
          key={item}
          className="flex items-center gap-0.5 rounded-md bg-accent-soft pl-2 text-sm text-accent-text"
        >
          <span className="max-w-60 truncate">{text}</span>
          <IconButton
            label={`Remove ${text}`}
            size="sm"
            disabled={disabled}
            onClick={() => onRemove(item)}
          >
            <X />
          </IconButton>
        </li>
      ))}
    </ul>
  );
}

function Slider({
  label,
  hint,
  value,
  onChange,
  disabled,
  parameter,
}: Omit<ListProps, "name"> & { parameter: PreviewParameter }) {
  const id = useId();
  const rule = parameter.validations[0];
  const min = rule?.validation_min ?? 0;
  const max = rule?.validation_max ?? 100;
  return (
    <Field id={id} label={label} hint={hint}>
      <div className="flex items-center gap-3">
        <span aria-hidden="true" className="text-sm text-muted tabular-nums">
          {min}
        </span>
        <input
          id={id}
          type="range"
          className="slider min-w-0 flex-1"
          min={min}
          max={max}
          value={value || String(min)}
          disabled={disabled}
          aria-describedby={describedBy(id, hint, undefined)}
          onChange={(event) => onChange(event.target.value)}
        />
        <span aria-hidden="true" className="text-sm text-muted tabular-nums">
          {max}
        </span>
        <output
          htmlFor={id}
          className="min-w-9 rounded-md bg-inset px-2 py-0.5 text-center font-medium tabular-nums"
        >
          {value || min}
        </output>
      </div>
    </Field>
  );
}
