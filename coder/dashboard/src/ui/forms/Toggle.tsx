// Yes or no: a checkbox, and a switch for changes that take effect at once.
import { Check } from "lucide-react";
import { Checkbox as RadixCheckbox, Switch as RadixSwitch } from "radix-ui";
import { useId, type ReactNode } from "react";

import { cx } from "../cx";
import { describedBy, Problem } from "./Field";

interface ToggleProps {
  label: ReactNode;
  hint?: ReactNode;
  problem?: string | undefined;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
  testId?: string;
  id?: string;
}

/** The label of the control `id`, and the hint and the error that describe it. */
function Caption({
  id,
  label,
  hint,
  problem,
}: Pick<ToggleProps, "label" | "hint" | "problem"> & { id: string }) {
  return (
    <>
      <label htmlFor={id} className="font-medium">
        {label}
      </label>
      {hint ? (
        <div id={`${id}-hint`} className="text-sm text-muted">
          {hint}
        </div>
      ) : null}
      <Problem id={id} text={problem} />
    </>
  );
}

export function Checkbox({
  label,
  hint,
  problem,
  checked,
  onChange,
  disabled,
  testId,
  id: given,
}: ToggleProps) {
  const own = useId();
  const id = given ?? own;
  return (
    <div className="flex items-start gap-2.5">
      <input
        id={id}
        type="checkbox"
        className="mt-0.5 shrink-0"
        checked={checked}
        disabled={disabled}
        data-testid={testId}
        aria-invalid={problem ? true : undefined}
        aria-describedby={describedBy(id, hint, problem)}
        onChange={(event) => onChange(event.target.checked)}
      />
      <div className="min-w-0">
        <Caption id={id} label={label} hint={hint} problem={problem} />
      </div>
    </div>
  );
}

/** A checkbox that is a button with that role, and an input in its form: scripts click buttons. */
export function ButtonCheckbox({
  label,
  hint,
  problem,
  checked,
  onChange,
  disabled = false,
  testId,
  id: given,
}: ToggleProps) {
  const own = useId();
  const id = given ?? own;
  return (
    <div className="flex items-start gap-2.5">
      <RadixCheckbox.Root
        id={id}
        checked={checked}
        onCheckedChange={(on) => onChange(on === true)}
        disabled={disabled}
        data-testid={testId}
        aria-invalid={problem ? true : undefined}
        aria-describedby={describedBy(id, hint, problem)}
        className={cx(
          "mt-0.5 grid size-4 shrink-0 place-items-center rounded-sm border border-line-strong bg-surface",
          "disabled:opacity-50 data-[state=checked]:border-accent data-[state=checked]:bg-accent",
        )}
      >
        <RadixCheckbox.Indicator className="text-on-accent">
          <Check className="size-3.5" aria-hidden="true" />
        </RadixCheckbox.Indicator>
      </RadixCheckbox.Root>
      <div className="min-w-0">
        <Caption id={id} label={label} hint={hint} problem={problem} />
      </div>
    </div>
  );
}

export function Switch({
  label,
  hint,
  problem,
  hideLabel = false,
  checked,
  onChange,
  disabled = false,
  testId,
  id: given,
}: ToggleProps & {
  /** The label is visible to screen readers only. */
  hideLabel?: boolean;
}) {
  const own = useId();
  const id = given ?? own;
  return (
    <div className={cx("flex items-start", !hideLabel && "gap-3")}>
      <RadixSwitch.Root
        id={id}
        checked={checked}
        onCheckedChange={onChange}
        disabled={disabled}
        data-testid={testId}
        aria-invalid={problem ? true : undefined}
        aria-describedby={describedBy(id, hint, problem)}
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
        <Caption id={id} label={label} hint={hint} problem={problem} />
      </div>
    </div>
  );
}
