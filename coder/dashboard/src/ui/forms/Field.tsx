// Form fields: each ties its label, hint and error to the input, so that screen readers read all
// three.
import { ChevronDown } from "lucide-react";
import {
  useId,
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
} from "react";

import { cx } from "../cx";

export const INPUT = cx(
  "w-full rounded-md border border-line-strong bg-surface px-2.5 text-base",
  "text-text shadow-card transition-colors duration-(--quick) hover:border-faint",
  "disabled:bg-inset disabled:text-muted [&[readonly]]:bg-inset",
  "[&[readonly]]:text-muted aria-invalid:border-bad",
);

interface Common {
  label: ReactNode;
  hint?: ReactNode;
  problem?: string | undefined;
  /** Visible to screen readers only. */
  hideLabel?: boolean;
}

interface FieldProps extends Common {
  id: string;
  required?: boolean | undefined;
  children: ReactNode;
}

/** The frame of a field around any input with the id `id`. */
export function Field({
  id,
  label,
  hint,
  problem,
  hideLabel = false,
  required = false,
  children,
}: FieldProps) {
  return (
    <div className="flex flex-col gap-1">
      {/* The asterisk depicts `required`; it is no part of the field's name. */}
      <label
        htmlFor={id}
        className={
          hideLabel
            ? "sr-only"
            : cx(
                "text-base font-medium",
                required && "after:ml-1 after:text-bad after:content-['*'/'']",
              )
        }
      >
        {label}
      </label>
      {hint ? (
        <div id={`${id}-hint`} className="text-sm text-muted [overflow-wrap:anywhere]">
          {hint}
        </div>
      ) : null}
      {children}
      <Problem id={id} text={problem} />
    </div>
  );
}

/** The error of the field `id`, announced when it appears. */
export function Problem({ id, text }: { id: string; text: string | undefined }) {
  if (!text) return null;
  return (
    <p
      id={`${id}-problem`}
      role="alert"
      className="text-sm whitespace-pre-line text-bad [overflow-wrap:anywhere]"
    >
      {text}
    </p>
  );
}

export function describedBy(
  id: string,
  hint: ReactNode,
  problem: string | undefined,
): string | undefined {
  return cx(hint ? `${id}-hint` : "", problem ? `${id}-problem` : "") || undefined;
}

type TextFieldProps = Common &
  Omit<InputHTMLAttributes<HTMLInputElement>, "onChange" | "value"> & {
    value: string;
    onChange: (value: string) => void;
    /** A control at the right of the input: the label and the hint keep the full width. */
    control?: ReactNode;
  };

export function TextField({
  label,
  hint,
  problem,
  hideLabel = false,
  value,
  onChange,
  id,
  className,
  control,
  ...rest
}: TextFieldProps) {
  const own = useId();
  const name = id ?? own;
  const input = (
    <input
      id={name}
      className={cx(INPUT, "h-8.5", rest.type === "number" && "max-w-40", className)}
      value={value}
      aria-invalid={problem ? true : undefined}
      aria-describedby={describedBy(name, hint, problem)}
      onChange={(event) => onChange(event.target.value)}
      {...rest}
    />
  );
  return (
    <Field
      id={name}
      label={label}
      hint={hint}
      problem={problem}
      hideLabel={hideLabel}
      required={rest.required}
    >
      {control ? (
        <div className="flex items-center gap-2">
          {input}
          {control}
        </div>
      ) : (
        input
      )}
    </Field>
  );
}

type TextAreaProps = Common &
  Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "onChange" | "value"> & {
    value: string;
    onChange: (value: string) => void;
  };

export function TextArea({
  label,
  hint,
  problem,
  hideLabel = false,
  value,
  onChange,
  id,
  className,
  ...rest
}: TextAreaProps) {
  const own = useId();
  const name = id ?? own;
  return (
    <Field
      id={name}
      label={label}
      hint={hint}
      problem={problem}
      hideLabel={hideLabel}
      required={rest.required}
    >
      <textarea
        id={name}
        rows={4}
        className={cx(INPUT, "py-1.5", className)}
        value={value}
        aria-invalid={problem ? true : undefined}
        aria-describedby={describedBy(name, hint, problem)}
        onChange={(event) => onChange(event.target.value)}
        {...rest}
      />
    </Field>
  );
}

type SelectFieldProps = Common &
  Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> & {
    value: string;
    onChange: (value: string) => void;
    options: readonly (readonly [value: string, text: string])[];
  };

/** The browser's own select: the best one on a phone and for screen readers. */
export function SelectField({
  label,
  hint,
  problem,
  hideLabel = false,
  value,
  onChange,
  options,
  id,
  className,
  ...rest
}: SelectFieldProps) {
  const own = useId();
  const name = id ?? own;
  return (
    <Field
      id={name}
      label={label}
      hint={hint}
      problem={problem}
      hideLabel={hideLabel}
      required={rest.required}
    >
      <div className={cx("relative", className)}>
        <select
          id={name}
          className={cx(INPUT, "h-8.5 appearance-none pr-8 text-ellipsis")}
          value={value}
          aria-invalid={problem ? true : undefined}
          aria-describedby={describedBy(name, hint, problem)}
          onChange={(event) => onChange(event.target.value)}
          {...rest}
        >
          {options.map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
        <ChevronDown
          className="pointer-events-none absolute top-1/2 right-2.5 size-4 -translate-y-1/2 text-faint"
          aria-hidden="true"
        />
      </div>
    </Field>
  );
}
