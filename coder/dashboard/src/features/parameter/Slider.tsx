// A number between two limits, chosen with a slider.
import { useId } from "react";

import type { PreviewParameter } from "../../api/types";
import { describedBy, Field } from "../../ui/forms/Field";
import type { ListProps } from "./control";

export function Slider({
  label,
  hint,
  problem,
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
    <Field id={id} label={label} hint={hint} problem={problem}>
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
          aria-invalid={problem ? true : undefined}
          aria-describedby={describedBy(id, hint, problem)}
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
