// An audit entry in words, and its change as lines: pure, so that every oddity of a diff is a test.
import type { Permissions } from "../../api/permissions";
import type { AuditDiffField, AuditLog } from "../../api/types";

export type Part = { kind: "text" | "user" | "target"; text: string };

const MARK = /\{(user|target)\}/g;

/** "{user} created workspace {target}" as parts, so that names can be links and never markup. */
export function sentence(
  entry: Pick<AuditLog, "description" | "resource_target" | "user">,
): Part[] {
  const who = entry.user?.username ?? "Somebody";
  const parts: Part[] = [];
  let from = 0;
  for (const match of entry.description.matchAll(MARK)) {
    const before = entry.description.slice(from, match.index);
    if (before) parts.push({ kind: "text", text: before });
    parts.push(
      match[1] === "user"
        ? { kind: "user", text: who }
        : { kind: "target", text: entry.resource_target },
    );
    from = match.index + match[0].length;
  }
  const rest = entry.description.slice(from);
  if (rest) parts.push({ kind: "text", text: rest });
  return parts;
}

/** Whoever reads the log may not see all that is in it: what leads to a refusal is no link. Kinds not named: everybody. */
const SEEN_BY: Readonly<Record<string, keyof Permissions>> = {
  user: "viewUsers",
  workspace: "viewAnyWorkspace",
  workspace_build: "viewAnyWorkspace",
  task: "viewAnyTask",
  oauth2_provider_app: "editOAuth2Apps",
};

/** Where an entry's thing is shown to this person; null for nowhere. */
export function linkOf(
  entry: Pick<AuditLog, "resource_link" | "resource_type" | "is_deleted">,
  may: Permissions,
  username: string,
): string | null {
  const link = entry.resource_link;
  if (!link.startsWith("/") || link.startsWith("//") || entry.is_deleted) return null;
  const asked = SEEN_BY[entry.resource_type];
  return asked === undefined ||
    may[asked] ||
    link.startsWith(`/@${username}/`) ||
    link.startsWith(`/tasks/${username}/`)
    ? link
    : null;
}

export interface Change {
  field: string;
  /** Null: it is a secret, whose values nobody is shown. */
  before: string | null;
  after: string | null;
}

/** One line a field, in the order of their names. */
export function changes(diff: unknown): Change[] {
  if (typeof diff !== "object" || diff === null || Array.isArray(diff)) return [];
  return Object.entries(diff as Record<string, AuditDiffField>)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([field, change]) => ({
      field,
      before: change.secret ? null : shown(change.old),
      after: change.secret ? null : shown(change.new),
    }));
}

/** A value as one text; nothing for what is empty, `null` in SQL's wrapped form included. */
export function shown(value: unknown): string {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "object" && "Valid" in value) {
    const [inner] = Object.entries(value)
      .filter(([name]) => name !== "Valid")
      .map(([, one]) => one as unknown);
    return (value as { Valid: boolean }).Valid ? shown(inner) : "";
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Entries of one day stand together; the days are the reader's own. */
export function byDay<T extends { time: string }>(
  entries: readonly T[],
): { day: string; entries: T[] }[] {
  const days: { day: string; entries: T[] }[] = [];
  for (const entry of entries) {
    const day = new Date(entry.time).toLocaleDateString(undefined, {
      weekday: "long",
      year: "numeric",
      month: "long",
      day: "numeric",
    });
    const last = days.at(-1);
    if (last?.day === day) last.entries.push(entry);
    else days.push({ day, entries: [entry] });
  }
  return days;
}

/** "workspace_build" as people say it. */
export function words(name: string): string {
  const text = name
    .replaceAll("_", " ")
    .replace(/\b(api|ai|idp|oauth2|ssh|mcp)\b/g, (short) =>
      short === "oauth2" ? "OAuth2" : short === "idp" ? "IdP" : short.toUpperCase(),
    );
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A browser's or program's name out of what it says of itself. */
export function program(userAgent: string): string {
  const known: readonly (readonly [RegExp, string])[] = [
    [/^coder\b/i, "Coder CLI"],
    [/Edg\//, "Edge"],
    [/Firefox\//, "Firefox"],
    [/Chrome\//, "Chrome"],
    [/Safari\//, "Safari"],
    [/terraform/i, "Terraform"],
    [/^curl/i, "curl"],
  ];
  return (
    known.find(([pattern]) => pattern.test(userAgent))?.[1] ?? userAgent.split(/[/ ]/)[0] ?? ""
  );
}
