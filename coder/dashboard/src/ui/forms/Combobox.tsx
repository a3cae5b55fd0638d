// A choice out of many with a search field: users, templates, parameters with thousands of options.
import { Check, ChevronsUpDown } from "lucide-react";
import { Popover as Radix } from "radix-ui";
import { useId, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from "react";

import { describedBy, Field, INPUT } from "./Field";
import { cx } from "../cx";
import { keyOf } from "../keys";

export interface Choice {
  value: string;
  text: string;
  hint?: string | undefined;
  icon?: ReactNode;
}

const SHOWN = 100; // the number of options shown; the search reaches the rest

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

function isMatch(option: Choice, text: string): boolean {
  return `${option.text} ${option.value} ${option.hint ?? ""}`
    .toLowerCase()
    .includes(text.trim().toLowerCase());
}

type ChoiceListProps = Pick<ComboboxProps, "value" | "options" | "onChange" | "onSearch"> & {
  id: string;
};

/** A search field above its results: the content of a combobox, and of a menu too long to read. */
export function ChoiceList({ id, value, options, onChange, onSearch }: ChoiceListProps) {
  const [text, setText] = useState("");
  /** The option that the user has moved to; null for none yet. */
  const [marked, setMarked] = useState<number | null>(() => {
    const position = options.findIndex((option) => option.value === value);
    return position < 0 ? null : position;
  });
  const list = useRef<HTMLUListElement>(null);
  const results = useMemo(() => {
    if (text.trim() === "") return options;
    const matching = options.filter((option) => isMatch(option, text));
    // The server matches more than the displayed text, such as a full name: its results come after the
    // visible matches.
    return onSearch
      ? [...matching, ...options.filter((option) => !matching.includes(option))]
      : matching;
  }, [options, text, onSearch]);
  const shown = results.slice(0, SHOWN);
  // While the answer to the typed text is pending, the list belongs to the previous text: Enter
  // selects nothing.
  const at = marked ?? (text.trim() === "" || (shown[0] && isMatch(shown[0], text)) ? 0 : -1);
  const move = (to: number) => {
    const next = Math.min(Math.max(0, to), shown.length - 1);
    setMarked(next);
    list.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  const key = (event: KeyboardEvent) => {
    const pressed = keyOf(event);
    if (pressed === "ArrowDown") move(at + 1);
    else if (pressed === "ArrowUp") move(at - 1);
    else if (pressed === "Enter") {
      const option = shown[at];
      if (option) onChange(option.value);
    } else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        autoFocus
        type="text"
        aria-label="Search options"
        role="searchbox"
        aria-controls={`${id}-list`}
        aria-activedescendant={shown[at] ? `${id}-${at}` : undefined}
        value={text}
        placeholder="Type to search"
        onKeyDown={key}
        onChange={(event) => {
          setText(event.target.value);
          setMarked(null);
          onSearch?.(event.target.value);
        }}
        className="h-9 w-full border-b border-line bg-transparent px-3 text-base outline-none"
      />
      <ul
        id={`${id}-list`}
        ref={list}
        role="listbox"
        aria-label="Options"
        className="max-h-64 overflow-y-auto p-1"
      >
        {shown.map((option, index) => (
          // The keyboard works through the search field, as in the combobox pattern.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={option.value}
            id={`${id}-${index}`}
            role="option"
            aria-selected={option.value === value}
            onClick={() => onChange(option.value)}
            onMouseMove={() => setMarked(index)}
            className={cx(
              "flex cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5",
              index === at && "bg-hover",
            )}
          >
            {option.icon}
            <span className="min-w-0 flex-1">
              <span className="block truncate">{option.text}</span>
              {option.hint ? (
                <span className="block truncate text-sm text-muted">{option.hint}</span>
              ) : null}
            </span>
            {option.value === value ? (
              <Check className="size-4 shrink-0 text-accent-text" aria-hidden="true" />
            ) : null}
          </li>
        ))}
      </ul>
      {shown.length === 0 ? (
        <p role="status" className="px-3 pb-3 text-sm text-muted">
          No results
        </p>
      ) : null}
      {results.length > SHOWN ? (
        <p className="border-t border-line px-3 py-1.5 text-sm text-muted">
          {(results.length - SHOWN).toLocaleString()} more: type to narrow the list.
        </p>
      ) : null}
    </>
  );
}
