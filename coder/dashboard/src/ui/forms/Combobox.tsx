// A choice out of many with a search field: users, templates, parameters with thousands of options.
import { ChevronsUpDown } from "lucide-react";
import { Popover as Radix } from "radix-ui";
import { useId, useState, type ReactNode } from "react";

import { ChoiceList } from "./ChoiceList";
import type { Choice } from "./choices";
import { describedBy, Field, INPUT } from "./Field";
import { cx } from "../cx";
import { keyOf } from "../keys";

export type { Choice } from "./choices";

interface ComboboxProps {
  label: ReactNode;
  hideLabel?: boolean;
  hint?: ReactNode;
  problem?: string | undefined;
  value: string;
  onChange: (value: string) => void;
  options: readonly Choice[];
  placeholder?: string;
  disabled?: boolean;
  required?: boolean;
  /** Called with the typed text if the options come from the server. */
  onSearch?: (text: string) => void;
  /** Why the server’s options are missing. */
  failure?: string | undefined;
  testId?: string;
  id?: string;
}

export function Combobox(props: ComboboxProps) {
  const {
    label,
    hideLabel = false,
    hint,
    problem,
    value,
    options,
    placeholder = "Choose…",
    disabled = false,
    required,
    testId,
  } = props;
  const own = useId();
  const id = props.id ?? own;
  const [open, setOpen] = useState(false);
  const chosen = options.find((option) => option.value === value);
  return (
    <Field
      id={id}
      label={label}
      hint={hint}
      problem={problem}
      hideLabel={hideLabel}
      required={required}
    >
      <Radix.Root open={open} onOpenChange={setOpen}>
        <Radix.Trigger asChild>
          <button
            id={id}
            type="button"
            role="combobox"
            aria-expanded={open}
            aria-controls={`${id}-list`}
            aria-invalid={problem ? true : undefined}
            aria-describedby={describedBy(id, hint, problem)}
            disabled={disabled}
            data-testid={testId}
            onKeyDown={(event) => {
              if (!/^Arrow(Down|Up)$/.test(keyOf(event))) return;
              event.preventDefault();
              setOpen(true);
            }}
            className={cx(INPUT, "flex h-8.5 items-center gap-2 text-left")}
          >
            {chosen?.icon}
            <span
              className={cx("min-w-0 flex-1 truncate", !chosen && value === "" && "text-faint")}
            >
              {chosen?.text ?? (value || placeholder)}
            </span>
            <ChevronsUpDown className="size-4 shrink-0 text-faint" aria-hidden="true" />
          </button>
        </Radix.Trigger>
        <Radix.Portal>
          <Radix.Content
            align="start"
            sideOffset={4}
            collisionPadding={8}
            aria-label="Options"
            className={cx(
              "z-50 w-(--radix-popover-trigger-width) min-w-64 animate-appear overflow-hidden",
              "rounded-lg border border-line bg-raised shadow-raised",
            )}
          >
            <ChoiceList
              {...props}
              id={id}
              onChange={(next) => {
                props.onChange(next);
                setOpen(false);
              }}
            />
          </Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Field>
  );
}
