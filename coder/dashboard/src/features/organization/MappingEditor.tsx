// Mapping of values of the identity provider: a list of values, each with its groups, roles or
// organizations.
import { Plus, Trash2, X } from "lucide-react";
import { useId, useState } from "react";

import { Button, IconButton } from "../../ui/Button";
import { TextField } from "../../ui/forms/Field";
import { SearchCombobox } from "../../ui/forms/SearchCombobox";
import { cx } from "../../ui/cx";

export type Mapping = Readonly<Record<string, readonly string[]>>;

/** The API's mapping, which may be null or absent when empty. */
export function readMapping(value: unknown): Mapping {
  return typeof value === "object" && value !== null ? (value as Mapping) : {};
}

export function withPair(mapping: Mapping, name: string, target: string): Mapping {
  const targets = mapping[name] ?? [];
  return targets.includes(target) ? mapping : { ...mapping, [name]: [...targets, target] };
}

/** Without a name and all its targets. */
export function withoutName(mapping: Mapping, name: string): Mapping {
  return Object.fromEntries(Object.entries(mapping).filter(([other]) => other !== name));
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
  const entries = Object.entries(value);
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
            <SearchCombobox
              label={targetLabel}
              placeholder={`Select ${noun}`}
              value={target}
              onChange={setTarget}
              options={targets}
            />
          </div>
          <Button icon={<Plus />} disabled={name.trim() === "" || target === ""} onClick={add}>
            Add IdP {noun}
          </Button>
        </div>
      )}
      {entries.length === 0 ? (
        <div className="rounded-lg border border-dashed border-line px-3 py-4 text-center text-sm text-muted">
          <h3 className="font-medium text-text">No {noun} mappings</h3>
          <p>Add one to assign members automatically at sign-in.</p>
        </div>
      ) : (
        <Mappings
          value={value}
          noun={noun}
          testId={testId}
          targets={targets}
          nameLabel={nameLabel}
          targetLabel={targetLabel}
          onChange={readOnly ? null : onChange}
        />
      )}
    </div>
  );
}

/** A row for each name, with all its targets. */
function Mappings({
  value,
  noun,
  testId,
  nameLabel,
  targetLabel,
  targets,
  onChange,
}: Pick<
  MappingEditorProps,
  "value" | "noun" | "testId" | "nameLabel" | "targetLabel" | "targets"
> & { onChange: ((value: Mapping) => void) | null }) {
  const heading = "px-3 py-1.5 text-left text-sm font-medium text-muted";
  return (
    <div className="overflow-x-auto rounded-lg border border-line">
      <table className="w-full table-fixed" aria-label={`Mappings of ${noun}s`}>
        <thead>
          <tr className="border-b border-line">
            <th scope="col" className={heading}>
              {nameLabel}
            </th>
            <th scope="col" className={heading}>
              {targetLabel}
            </th>
            <th scope="col" className={cx(heading, "w-14")}>
              <span className="sr-only">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {Object.entries(value).map(([from, own]) => (
            <tr key={from} data-testid={`${testId}-${from}`} className="align-top">
              <td className="px-3 py-2">
                <code id={`${testId}-name-${from}`} className="text-sm [overflow-wrap:anywhere]">
                  {from}
                </code>
              </td>
              <td className="px-3 py-1.5">
                <span className="flex flex-wrap gap-1.5">
                  {own.map((to) => (
                    <span
                      key={to}
                      className="inline-flex items-center gap-1 rounded-md bg-inset py-0.5 pr-1 pl-2"
                    >
                      <span className="[overflow-wrap:anywhere]">
                        {targets.find((choice) => choice.value === to)?.text ?? (
                          <>
                            <span className="text-warn">{to}</span>{" "}
                            <span className="text-sm text-warn">(deleted)</span>
                          </>
                        )}
                      </span>
                      {onChange && own.length > 1 ? (
                        <IconButton
                          size="sm"
                          label={`Remove ${targets.find((choice) => choice.value === to)?.text ?? to}`}
                          onClick={() => onChange(withoutPair(value, from, to))}
                        >
                          <X />
                        </IconButton>
                      ) : null}
                    </span>
                  ))}
                </span>
              </td>
              <td className="px-3 py-1 text-right">
                {onChange ? (
                  <IconButton
                    size="sm"
                    // The name stays out of it: scripts find the row's first cell by the name.
                    label="Delete"
                    aria-describedby={`${testId}-name-${from}`}
                    onClick={() => onChange(withoutName(value, from))}
                  >
                    <Trash2 />
                  </IconButton>
                ) : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
