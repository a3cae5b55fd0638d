// Mapping of values of the identity provider: a list of values, each with its groups, roles or
// organizations.
import { Plus, X } from "lucide-react";
import { useId, useState } from "react";

import { Button, IconButton } from "../../ui/Button";
import { Combobox } from "../../ui/forms/Combobox";
import { TextField } from "../../ui/forms/Field";

export type Mapping = Readonly<Record<string, readonly string[]>>;

/** The API's mapping, which may be null or absent when empty. */
export function readMapping(value: unknown): Mapping {
  return typeof value === "object" && value !== null ? (value as Mapping) : {};
}

export function withPair(mapping: Mapping, name: string, target: string): Mapping {
  const targets = mapping[name] ?? [];
  return targets.includes(target) ? mapping : { ...mapping, [name]: [...targets, target] };
}

export function withoutPair(mapping: Mapping, name: string, target: string): Mapping {
  const { [name]: targets = [], ...rest } = mapping;
  const remaining = targets.filter((other) => other !== target);
  return remaining.length > 0 ? { ...rest, [name]: remaining } : rest;
}

interface MappingEditorProps {
  value: Mapping;
  onChange: (value: Mapping) => void;
  /** "group", "role" or "organization". */
  noun: string;
  /** Prefix of the rows' test ids. */
  testId: string;
  nameLabel: string;
  targetLabel: string;
  targets: readonly { value: string; text: string }[];
  /** Values seen at sign-in: offered, not required. */
  suggestions?: readonly string[];
  readOnly?: boolean;
}

export function MappingEditor({
  value,
  onChange,
  noun,
  testId,
  nameLabel,
  targetLabel,
  targets,
  suggestions: known = [],
  readOnly = false,
}: MappingEditorProps) {
  const [name, setName] = useState("");
  const [target, setTarget] = useState("");
  const list = useId();
  const pairs = Object.entries(value).flatMap(([from, own]) =>
    own.map((to) => [from, to] as const),
  );
  const add = () => {
    onChange(withPair(value, name.trim(), target));
    setName("");
    setTarget("");
  };
  return (
    <div className="flex flex-col gap-3">
      {readOnly ? null : (
        <div className="flex flex-wrap items-end gap-2">
          <div className="min-w-44 flex-1">
            <TextField
              label={nameLabel}
              list={list}
              autoComplete="off"
              value={name}
              onChange={setName}
            />
            <datalist id={list}>
              {known.map((claim) => (
                <option key={claim} value={claim} />
              ))}
            </datalist>
          </div>
          <div className="min-w-44 flex-1">
            <Combobox label={targetLabel} value={target} onChange={setTarget} options={targets} />
          </div>
          <Button icon={<Plus />} disabled={name.trim() === "" || target === ""} onClick={add}>
            Add IdP {noun}
          </Button>
        </div>
      )}
      {pairs.length === 0 ? (
        <div className="rounded-lg border border-dashed border-line px-3 py-4 text-center text-sm text-muted">
          <h3 className="font-medium text-text">No {noun} mappings</h3>
          <p>Add one to assign members automatically at sign-in.</p>
        </div>
      ) : (
        <ul aria-label="Mappings" className="divide-y divide-line rounded-lg border border-line">
          {pairs.map(([from, to]) => (
            <li
              key={`${from} ${to}`}
              data-testid={`${testId}-${from}`}
              className="flex items-center gap-3 px-3 py-1.5"
            >
              <code className="min-w-0 flex-1 text-sm [overflow-wrap:anywhere]">{from}</code>
              <span aria-hidden="true" className="text-faint">
                →
              </span>
              <span className="sr-only">maps to</span>
              <span className="min-w-0 flex-1 [overflow-wrap:anywhere]">
                {targets.find((choice) => choice.value === to)?.text ?? (
                  <span className="text-warn">{to} (deleted)</span>
                )}
              </span>
              {readOnly ? null : (
                <IconButton
                  size="sm"
                  label={`Delete ${from}`}
                  onClick={() => onChange(withoutPair(value, from, to))}
                >
                  <X />
                </IconButton>
              )}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
