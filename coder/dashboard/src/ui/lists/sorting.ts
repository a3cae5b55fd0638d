// The order of a table's loaded rows.
export interface Sorting {
  column: string;
  down: boolean;
}

export type SortValue = string | number;

/** Ascending, descending, the server's order. */
export function nextSorting(now: Sorting | null, column: string): Sorting | null {
  if (now?.column !== column) return { column, down: false };
  return now.down ? null : { column, down: true };
}

const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Return the rows in order; equal rows keep theirs. */
export function sorted<T>(
  rows: readonly T[],
  valueOf: ((row: T) => SortValue) | undefined,
  down: boolean,
): readonly T[] {
  if (!valueOf) return rows;
  const compare = (a: SortValue, b: SortValue) =>
    typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
  return [...rows].sort((a, b) => (down ? -1 : 1) * compare(valueOf(a), valueOf(b)));
}
