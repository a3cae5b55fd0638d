// A choice out of many, searched by typing into the field itself: members, groups, roles.
import { Popover as Radix } from "radix-ui";
import { useId, useRef, useState, type KeyboardEvent, type ReactNode } from "react";

import { ChoiceOptions, useChoices, type Choice } from "./choices";
import { Field, INPUT } from "./Field";
import { cx } from "../cx";
import { keyOf } from "../keys";

interface SearchComboboxProps {
  label: ReactNode;
  hideLabel?: boolean;
  /** "" for none. */
  value: string;
  onChange: (value: string) => void;
  options: readonly Choice[];
  placeholder: string;
  onSearch?: (text: string) => void;
  /** Shown if nothing matches. */
  empty?: string;
}

export function SearchCombobox({
  label,
  hideLabel = false,
  value,
  onChange,
  options,
  placeholder,
  onSearch,
  empty,
}: SearchComboboxProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [open, setOpen] = useState(false);
  const choose = (next: string) => {
    onChange(next);
    choices.clear();
    setOpen(false);
    field.current?.focus();
  };
  const choices = useChoices({ id, value, options, onChange: choose, onSearch });
  const chosen = options.find((option) => option.value === value);
  const onKey = (event: KeyboardEvent) => {
    const key = keyOf(event);
    if (key === "Tab") setOpen(false);
    else if (open) choices.onKey(event);
    else if (key === "ArrowDown" || key === "ArrowUp") {
      setOpen(true);
      event.preventDefault();
    }
  };
  return (
    <Field id={id} label={label} hideLabel={hideLabel}>
      <Radix.Root open={open} onOpenChange={setOpen}>
        <Radix.Anchor asChild>
          <input
            id={id}
            ref={field}
            type="text"
            role="combobox"
            autoComplete="off"
            spellCheck={false}
            aria-autocomplete="list"
            aria-expanded={open}
            aria-controls={`${id}-list`}
            aria-activedescendant={open ? choices.active : undefined}
            placeholder={placeholder}
            // What is typed replaces the choice: the field then searches again.
            value={chosen && choices.text === "" ? chosen.text : choices.text}
            onChange={(event) => {
              if (value !== "") onChange("");
              choices.search(event.target.value);
              setOpen(true);
            }}
            onClick={() => setOpen(true)}
            onKeyDown={onKey}
            className={cx(INPUT, "h-8.5")}
          />
        </Radix.Anchor>
        <Radix.Portal>
          <Radix.Content
            align="start"
            sideOffset={4}
            collisionPadding={8}
            aria-label="Options"
            onOpenAutoFocus={(event) => event.preventDefault()}
            onCloseAutoFocus={(event) => event.preventDefault()}
            onInteractOutside={(event) => {
              if (event.target === field.current) event.preventDefault();
            }}
            className={cx(
              "z-50 w-(--radix-popover-trigger-width) min-w-64 animate-appear overflow-hidden",
              "rounded-lg border border-line bg-raised shadow-raised",
            )}
          >
            <ChoiceOptions
              id={id}
              value={value}
              choices={choices}
              onChange={choose}
              {...(empty === undefined ? {} : { empty })}
            />
          </Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Field>
  );
}
