// A choice among a few options, each with a hint.
import { useId, type ReactNode } from "react";

import { cx } from "../cx";
import { describedBy, Problem } from "./Field";

interface RadioCardsProps {
  label: string;
  /** The heading, where it is more than the label. */
  heading?: ReactNode;
  hint?: ReactNode;
  problem?: string | undefined;
  value: string;
  onChange: (value: string) => void;
  options: readonly {
    value: string;
    text: ReactNode;
    hint?: ReactNode;
    icon?: ReactNode;
    disabled?: boolean;
  }[];
  columns?: boolean;
}

/** A choice among a few options, each explained. */
export function RadioCards({
  label,
  heading,
  hint,
  problem,
  value,
  onChange,
  options,
  columns = false,
}: RadioCardsProps) {
  const name = useId();
  return (
    <fieldset
      aria-label={label}
      aria-describedby={describedBy(name, hint, problem)}
      className="flex flex-col gap-1.5"
    >
      <legend className="mb-1 text-base font-medium">{heading ?? label}</legend>
      {hint ? (
        <div id={`${name}-hint`} className="mb-1 text-sm text-muted">
          {hint}
        </div>
      ) : null}
      <div
        className={
          columns
            ? "grid grid-cols-[repeat(auto-fill,minmax(13rem,1fr))] gap-2"
            : "flex flex-col gap-2"
        }
      >
        {options.map((option) => (
          <label
            key={option.value}
            className={cx(
              "flex items-start gap-2.5 rounded-lg border border-line bg-surface px-3 py-2.5",
              "hover:border-line-strong has-checked:border-accent has-checked:bg-accent-soft",
              "has-disabled:opacity-50",
            )}
          >
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              disabled={option.disabled}
              className="mt-0.5 shrink-0"
              onChange={() => onChange(option.value)}
            />
            {option.icon}
            <span className="min-w-0">
              <span className="block font-medium [overflow-wrap:anywhere]">{option.text}</span>
              {option.hint ? (
                <span className="block text-sm text-muted [overflow-wrap:anywhere]">
                  {option.hint}
                </span>
              ) : null}
            </span>
          </label>
        ))}
      </div>
      <Problem id={name} text={problem} />
    </fieldset>
  );
}
