// The period a template's insights are of.
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
          options={[...PRESETS, [CUSTOM, "Other days"]]}
          onChange={(value) => onChange(value === CUSTOM ? { from, to } : { days: value })}
        />
      </div>
      {choice === CUSTOM ? (
        <>
          <TextField
            label="First day"
            type="date"
            max={to || today}
            value={from}
            aria-invalid={problem ? true : undefined}
            onChange={(value) => onChange({ from: value, to })}
          />
          <TextField
            label="Last day"
            type="date"
            min={from || undefined}
            max={today}
            value={to}
            aria-invalid={problem ? true : undefined}
            onChange={(value) => onChange({ from, to: value })}
          />
          <p className="pb-1.5 text-sm text-muted">Days are counted in UTC.</p>
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
