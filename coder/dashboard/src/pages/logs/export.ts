// Export of a log: what the reader may see, page by page, up to a limit.
import { get, withQuery } from "../../api/client";

const PAGE = 100;
/** Entries of one file at most. */
export const MOST = 5000;

export type Format = "csv" | "jsonl";
export type Cell = string | number;

/** Read up to `MOST` entries. `page` returns the entries of an answer. */
export async function readAll<A, T>(
  path: string,
  query: string,
  page: (answer: A) => readonly T[],
): Promise<T[]> {
  const all: T[] = [];
  while (all.length < MOST) {
    const answer = await get<A>(
      withQuery(path, { limit: PAGE, offset: all.length || undefined, q: query }),
    );
    const entries = page(answer);
    all.push(...entries);
    if (entries.length < PAGE) break;
  }
  return all.slice(0, MOST);
}

/**
 * One field of a CSV file. A spreadsheet would run text that begins like a formula: an
 * apostrophe makes it text (OWASP, CSV injection).
 */
export function csvField(value: Cell): string {
  const text = String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function textOf<T>(
  entries: readonly T[],
  columns: Readonly<Record<string, (entry: T) => Cell>>,
  format: Format,
): string {
  if (format === "jsonl") return entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  const cells = Object.values(columns);
  const rows = entries.map((entry) => cells.map((cell) => csvField(cell(entry))).join(","));
  return [Object.keys(columns).join(","), ...rows].map((row) => `${row}\r\n`).join("");
}

export function saveAs(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
