// Tools of a log: its dates by picking, and its export.
import { Download } from "lucide-react";
import { useState } from "react";

import { Button } from "../../ui/Button";
import { Menu, MenuItem, MenuNote } from "../../ui/Menu";
import { termOf, withTerm } from "../../ui/lists/search-terms";
import { toast } from "../../ui/toast";
import { MOST, saveAs, textOf, type Cell, type Format } from "./export";

const DATES = "h-8.5 rounded-md border border-line bg-surface px-2 text-text";

/** `toTerm` turns a day (2026-01-31) into the value of a term, `toDay` back. */
export function DateRange({
  filter,
  terms: [from, to],
  toTerm,
  onChange,
}: {
  filter: string;
  terms: readonly [from: string, to: string];
  toTerm: (day: string, isEnd: boolean) => string;
  onChange: (filter: string) => void;
}) {
  const input = (label: string, term: string, isEnd: boolean) => (
    <label className="flex items-center gap-1.5 text-sm text-muted">
      {label}
      <input
        type="date"
        className={DATES}
        value={termOf(filter, term)?.slice(0, 10) ?? ""}
        onChange={({ target: { value } }) =>
          onChange(withTerm(filter, term, value === "" ? null : toTerm(value, isEnd)))
        }
      />
    </label>
  );
  return (
    <span className="flex flex-wrap items-center gap-2">
      {input("From", from, false)}
      {input("To", to, true)}
    </span>
  );
}

/** The file has what the reader may see, at most the newest `MOST` entries of the search. */
export function ExportMenu<T>({
  name,
  read,
  columns,
}: {
  name: string;
  read: () => Promise<T[]>;
  columns: Readonly<Record<string, (entry: T) => Cell>>;
}) {
  const [busy, setBusy] = useState(false);
  const save = async (format: Format) => {
    setBusy(true);
    try {
      const entries = await read();
      saveAs(
        `${name}.${format}`,
        textOf(entries, columns, format),
        format === "csv" ? "text/csv" : "application/jsonl",
      );
      if (entries.length === MOST)
        toast.done(`Exported the newest ${MOST} entries.`, "Narrow the search for the others.");
    } catch (error) {
      toast.failed("Failed to export", error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Menu
      trigger={
        <Button icon={<Download />} busy={busy}>
          Export
        </Button>
      }
    >
      <MenuItem onSelect={() => void save("csv")}>CSV</MenuItem>
      <MenuItem onSelect={() => void save("jsonl")}>JSON lines</MenuItem>
      <MenuNote>The entries of this search, at most {MOST}.</MenuNote>
    </Menu>
  );
}
