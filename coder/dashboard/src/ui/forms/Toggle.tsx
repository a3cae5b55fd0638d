// Yes or no: a checkbox, and a switch for changes that take effect at once.
import { Switch as RadixSwitch } from "radix-ui";
import { useId, type ReactNode } from "react";

import { cx } from "../cx";

interface ToggleProps {
  label: ReactNode;
  hint?: ReactNode;
  /** Visible to screen readers only. */
  hideLabel?: boolean;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
  testId?: string;
}

export function Checkbox({
  label,
  hint,
  checked,
  onChange,
  disabled,
  testId,
}: Omit<ToggleProps, "hideLabel">) {
  const id = useId();
  return (
    <div className="flex items-start gap-2.5">
      <input
        id={id}
        type="checkbox"
        className="mt-0.5 shrink-0"
        checked={checked}
        disabled={disabled}
        data-testid={testId}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.target.checked)}
      />
      <div className="min-w-0">
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        {hint ? (
          <div id={`${id}-hint`} className="text-sm text-muted">
            {hint}
          </div>
        ) : null}
      </div>
    </div>
  );
}

export function Switch({
  label,
  hint,
  hideLabel = false,
  checked,
  onChange,
  disabled = false,
  testId,
}: ToggleProps) {
  const id = useId();
  return (
    <div className={cx("flex items-start", !hideLabel && "gap-3")}>
      <RadixSwitch.Root
        id={id}
        checked={checked}
        onCheckedChange={onChange}
        disabled={disabled}
        data-testid={testId}
        aria-describedby={hint ? `${id}-hint` : undefined}
        className={cx(
          "relative mt-0.5 h-5 w-9 shrink-0 rounded-full bg-line-strong transition-colors",
          "duration-(--quick) disabled:opacity-50 data-[state=checked]:bg-accent",
        )}
      >
        <RadixSwitch.Thumb
          className={cx(
            "block size-4 translate-x-0.5 rounded-full bg-on-accent shadow-card",
            "transition-transform duration-(--quick) data-[state=checked]:translate-x-4.5",
          )}
        />
      </RadixSwitch.Root>
      <div className={hideLabel ? "sr-only" : "min-w-0"}>
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        {hint ? (
          <div id={`${id}-hint`} className="text-sm text-muted">
            {hint}
          </div>
        ) : null}
      </div>
    </div>
  );
}
