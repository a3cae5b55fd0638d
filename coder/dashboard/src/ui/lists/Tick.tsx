// The checkbox that selects a row, or all rows of a table.
export function Tick({
  label,
  checked,
  partly = false,
  onChange,
}: {
  label: string;
  checked: boolean;
  partly?: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <input
      type="checkbox"
      aria-label={label}
      className="grid"
      checked={checked}
      ref={(input) => {
        if (input) input.indeterminate = partly && !checked;
      }}
      onChange={(event) => onChange(event.target.checked)}
    />
  );
}
