// Access to one object: users and groups with a role each, added by search.
import { UserPlus, X } from "lucide-react";
import { useState } from "react";

import { Avatar } from "../../ui/Avatar";
import { Button, IconButton } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import type { Choice } from "../../ui/forms/Combobox";
import { SearchCombobox } from "../../ui/forms/SearchCombobox";
import { Empty } from "../../ui/Empty";
import { SelectField } from "../../ui/forms/Field";
import { toast } from "../../ui/toast";

export interface Entry {
  id: string;
  kind: "user" | "group";
  name: string;
  hint?: string | undefined;
  picture?: string | undefined;
  role: string;
  /** The group of all members of the organization: granting it a role needs confirmation. */
  everyone?: boolean;
}

interface AccessListProps {
  label: string;
  entries: readonly Entry[];
  /**
   * From the weakest to the strongest role; the last element completes the sentence "… can then":
   * "create workspaces from it".
   */
  roles: readonly (readonly [value: string, text: string, can: string])[];
  /** A search result. */
  results: readonly Omit<Entry, "role">[];
  onSearch: (text: string) => void;
  /** Why there are no results, if the search failed. */
  searchError?: Error | null;
  /** Resolves to whether the change was saved. */
  onChange: (entry: Omit<Entry, "role">, role: string) => Promise<boolean>;
  readOnly?: boolean;
  emptyText: string;
}

/** The role "" removes the entry. */
export function AccessList({
  label,
  entries,
  roles,
  results: found,
  onSearch,
  searchError = null,
  onChange,
  readOnly = false,
  emptyText,
}: AccessListProps) {
  const [chosen, setChosen] = useState("");
  const options = roles.map(([value, text]) => [value, text] as const);
  const weakest = roles[0]?.[0] ?? "";
  const [role, setRole] = useState(weakest);
  const choices: Choice[] = found
    .filter((item) => !entries.some((entry) => entry.id === item.id))
    .map((item) => ({
      value: item.id,
      text: item.name,
      hint: item.kind === "group" ? "Group" : item.hint,
      icon: <Avatar name={item.name} src={item.picture} size="xs" square={item.kind === "group"} />,
    }));
  const [pending, setPending] = useState<{ entry: Omit<Entry, "role">; role: string } | null>(null);
  const rank = (name: string) => roles.findIndex(([value]) => value === name);
  const change = (entry: Omit<Entry, "role">, next: string) => {
    const now = entries.find((candidate) => candidate.id === entry.id)?.role ?? "";
    if (entry.everyone && rank(next) > rank(now)) setPending({ entry, role: next });
    else void save(entry, next);
  };
  const save = async (entry: Omit<Entry, "role">, next: string) => {
    const known = entries.some((candidate) => candidate.id === entry.id);
    if (!(await onChange(entry, next))) return;
    const done = next === "" ? "removed" : known ? "updated" : "added";
    toast.done(`Access of "${entry.name}" ${done} successfully.`);
  };
  const add = () => {
    const item = found.find((candidate) => candidate.id === chosen);
    if (item) change(item, role);
    setChosen("");
    setRole(weakest); // the next member does not silently get the role of this one
  };
  const pendingRole = roles.find(([value]) => value === pending?.role);
  return (
    <div className="flex flex-col gap-4">
      {readOnly ? null : (
        <div className="flex flex-wrap items-end gap-2">
          <div className="min-w-60 flex-1">
            <SearchCombobox
              label="User or group"
              value={chosen}
              onChange={setChosen}
              onSearch={onSearch}
              options={choices}
              placeholder="Search for user or group"
              empty={searchError ? `The search failed: ${searchError.message}` : "No results"}
            />
          </div>
          <div className="w-36">
            <SelectField label="Role" value={role} onChange={setRole} options={options} />
          </div>
          <Button variant="primary" icon={<UserPlus />} disabled={chosen === ""} onClick={add}>
            Add member
          </Button>
        </div>
      )}
      {entries.length === 0 ? (
        <Empty title="No members yet" level={3}>
          {emptyText}
        </Empty>
      ) : (
        <ul aria-label={label} className="divide-y divide-line rounded-lg border border-line">
          {entries.map((entry) => (
            <li key={entry.id} className="flex flex-wrap items-center gap-x-3 gap-y-2 px-3 py-2">
              <Avatar
                name={entry.name}
                src={entry.picture}
                size="sm"
                square={entry.kind === "group"}
              />
              <span className="min-w-0 flex-1 max-sm:basis-[calc(100%-3rem)]">
                <span className="block truncate font-medium">{entry.name}</span>
                <span className="block truncate text-sm text-muted">
                  {entry.kind === "group" ? (entry.hint ?? "Group") : entry.hint}
                </span>
              </span>
              {readOnly ? (
                <span className="text-sm text-muted">
                  {roles.find(([value]) => value === entry.role)?.[1] ?? entry.role}
                </span>
              ) : (
                <>
                  <div className="w-32">
                    <SelectField
                      hideLabel
                      label={`Role of ${entry.name}`}
                      value={entry.role}
                      onChange={(next) => change(entry, next)}
                      options={options}
                    />
                  </div>
                  <IconButton
                    size="sm"
                    label={`Remove ${entry.name}`}
                    onClick={() => change(entry, "")}
                  >
                    <X />
                  </IconButton>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      <Confirm
        open={pending !== null}
        onClose={() => setPending(null)}
        danger={false}
        title={`Give “${pendingRole?.[1] ?? ""}” to everyone?`}
        confirm="Give to everyone"
        onConfirm={async () => {
          if (pending) await save(pending.entry, pending.role);
        }}
      >
        <p>Every current and future member of the organization can then {pendingRole?.[2]}.</p>
      </Confirm>
    </div>
  );
}
