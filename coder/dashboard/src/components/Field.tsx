import { useId, type HTMLInputTypeAttribute } from "react";

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  type?: HTMLInputTypeAttribute;
  autoComplete?: string;
  placeholder?: string;
  required?: boolean;
  problem?: string | undefined;
}

export function Field({ label, value, onChange, problem, ...rest }: FieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input id={id} value={value} aria-invalid={problem !== undefined} aria-describedby={problem === undefined ? undefined : `${id}-problem`}
        onChange={(event) => onChange(event.target.value)} {...rest} />
      {problem === undefined ? null : <small id={`${id}-problem`} className="problem">{problem}</small>}
    </div>
  );
}
