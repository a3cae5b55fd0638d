// Controls for list parameters: options from a menu, free words.
import { X } from "lucide-react";
import { useId, useState } from "react";

import type { PreviewParameter } from "../../api/types";
import { IconButton } from "../../ui/Button";
import { Combobox } from "../../ui/forms/Combobox";
import { describedBy, Field, INPUT } from "../../ui/forms/Field";
import { keyOf } from "../../ui/keys";
import { readList, writeList } from "./list-value";
import { choices, type ListProps } from "./control";

export function MultiSelect({
  label,
  name,
  hint,
  problem,
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
        problem={problem}
        value=""
        placeholder={chosen.length === 0 ? "Select any number of options" : "Add an option"}
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

export function TagSelect({
  label,
  name,
  hint,
  problem,
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
      <Field id={id} label={label} hint={hint} problem={problem}>
        <input
          id={id}
          className={`${INPUT} h-8.5`}
          value={text}
          disabled={disabled}
          placeholder={placeholder || "Type and press Enter"}
          aria-invalid={problem ? true : undefined}
          aria-describedby={describedBy(id, hint, problem)}
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
    <ul aria-label={`Selected values of ${name}`} className="flex flex-wrap gap-1.5">
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
