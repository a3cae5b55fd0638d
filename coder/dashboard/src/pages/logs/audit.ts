// An audit entry in words, and its diff as lines: pure functions, so that every oddity of a diff
// has a test.
import type { Permissions } from "../../api/permissions";
import type { AuditDiffField, AuditLog } from "../../api/types";

export type Part = { kind: "text" | "user" | "target"; text: string };

const MARK = /\{(user|target)\}/g;

/** "{user} created workspace {target}" as parts, so that names can be links and never markup. */
export function sentence(
  entry: Pick<AuditLog, "description" | "resource_target" | "user">,
): Part[] {
  const authorName = entry.user?.username ?? "An unknown user";
  const parts: Part[] = [];
  let from = 0;
  for (const match of entry.description.matchAll(MARK)) {
    const before = entry.description.slice(from, match.index);
    if (before) parts.push({ kind: "text", text: before });
    parts.push(
      match[1] === "user"
        ? { kind: "user", text: authorName }
        : { kind: "target", text: entry.resource_target },
    );
    from = match.index + match[0].length;
  }
  const rest = entry.description.slice(from);
  if (rest) parts.push({ kind: "text", text: rest });
  return parts;
}

/** The owner of a workspace or task that another user created or changed; "" for none. */
export function ownerOf(entry: Pick<AuditLog, "resource_link" | "user">): string {
  const owner = /^\/(?:@|tasks\/)([^/]+)\//.exec(entry.resource_link)?.[1] ?? "";
  return owner === entry.user?.username ? "" : owner;
}

/**
 * Permissions needed for a link: a reader of the log may lack access to what it names. Kinds that
 * are absent here are visible to all.
 */
const SEEN_BY: Readonly<Record<string, keyof Permissions>> = {
  user: "viewUsers",
  workspace: "viewAnyWorkspace",
  workspace_build: "viewAnyWorkspace",
  task: "viewAnyTask",
  oauth2_provider_app: "editOAuth2Apps",
};

/** The address of an entry's object for this reader; null for none. */
export function linkOf(
  entry: Pick<AuditLog, "resource_link" | "resource_type" | "is_deleted">,
  may: Permissions,
  username: string,
): string | null {
  const link = entry.resource_link;
  if (!link.startsWith("/") || link.startsWith("//") || entry.is_deleted) return null;
  const permission = SEEN_BY[entry.resource_type];
  return permission === undefined ||
    may[permission] ||
    link.startsWith(`/@${username}/`) ||
    link.startsWith(`/tasks/${username}/`)
    ? link
    : null;
}

export interface Change {
  field: string;
  /** Null: a secret, whose values are shown to no user. */
  before: string | null;
  after: string | null;
}

/** Changes with one line per field, ordered by name. */
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

/** A value as text; "" for empty values, SQL's wrapped `null` included. */
export function shown(value: unknown): string {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "object" && "Valid" in value) {
    const [inner] = Object.entries(value)
      .filter(([name]) => name !== "Valid")
      .map(([, change]) => change as unknown);
    return (value as { Valid: boolean }).Valid ? shown(inner) : "";
  }
  return typeof value !== "object" ? String(value) : (plainPairs(value) ?? JSON.stringify(value));
}

/** "ana: use, ben: admin" of a flat object, such as an access list, or of a list; null for any other. */
function plainPairs(value: object): string | null {
  if (Array.isArray(value))
    return value.every((item) => typeof item === "string") ? value.join(", ") : null;
  const pairs = Object.entries(value as Record<string, unknown>);
  const isFlat = pairs.every(
    ([, item]) =>
      typeof item === "string" ||
      (Array.isArray(item) && item.every((part) => typeof part === "string")),
  );
  return isFlat ? pairs.map(([name, item]) => `${name}: ${String(item)}`).join(", ") : null;
}

/** Entries grouped by day in the reader's time zone. */
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

/** "workspace_build" in readable words. */
export function words(name: string): string {
  const text = name
    .replaceAll("_", " ")
    .replace(/\b(acl|api|ai|id|idp|ip|oauth2|ssh|mcp|ttl|url)\b/g, (short) =>
      short === "oauth2" ? "OAuth2" : short === "idp" ? "IdP" : short.toUpperCase(),
    );
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The name of the browser or program in a user agent. */
export function program(userAgent: string): string {
  const programs: readonly (readonly [RegExp, string])[] = [
    [/^coder\b/i, "Coder CLI"],
    [/Edg\//, "Edge"],
    [/Firefox\//, "Firefox"],
    [/Chrome\//, "Chrome"],
    [/Safari\//, "Safari"],
    [/terraform/i, "Terraform"],
    [/^curl/i, "curl"],
  ];
  return (
    programs.find(([pattern]) => pattern.test(userAgent))?.[1] ?? userAgent.split(/[/ ]/)[0] ?? ""
  );
}
