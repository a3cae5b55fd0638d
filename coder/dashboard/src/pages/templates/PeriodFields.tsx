// The period of a template's insights.
import { SelectField, TextField } from "../../ui/forms/Field";
import { CUSTOM, PRESETS, type Period } from "./insights-range";

export function PeriodFields({
  period,
  onChange,
}: {
  period: Period;
  onChange: (address: Record<string, string>) => void;
}) {
  const { from, to, choice, problem } = period;
  const today = new Date().toISOString().slice(0, 10);
  return (
    <div className="flex flex-wrap items-end gap-3">
      <div className="w-44">
        <SelectField
          label="Period"
          value={choice}
          options={[...PRESETS, [CUSTOM, "Custom"]]}
          onChange={(value) => onChange(value === CUSTOM ? { from, to } : { days: value })}
        />
      </div>
      {choice === CUSTOM ? (
        <>
          <TextField
            label="From"
            type="date"
            max={to || today}
            value={from}
            aria-invalid={problem ? true : undefined}
            onChange={(value) => onChange({ from: value, to })}
          />
          <TextField
            label="To"
            type="date"
            min={from || undefined}
            max={today}
            value={to}
            aria-invalid={problem ? true : undefined}
            onChange={(value) => onChange({ from, to: value })}
          />
          <p className="pb-1.5 text-sm text-muted">Days are in UTC.</p>
        </>
      ) : null}
      {problem ? (
        <p role="alert" className="basis-full text-sm text-bad">
          {problem}
        </p>
      ) : null}
    </div>
  );
}
