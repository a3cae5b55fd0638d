// The server's options on the settings pages: which page shows which option, and values as text.
import type { DeploymentOption, OptionGroup } from "../../api/queries/deployment";
import { counted } from "../../lib/words";

export type OptionsPage = "userauth" | "network" | "security" | "observability" | "all";

/** "Networking / TLS": the groups around an option, outermost first. */
export function groupPath(option: Pick<DeploymentOption, "group">): string {
  const names: string[] = [];
  for (let group: OptionGroup | undefined = option.group; group; group = group.parent)
    names.unshift(group.name);
  return names.join(" / ");
}

const SECURITY = new Set([
  "ssh-keygen-algorithm",
  "secure-auth-cookie",
  "samesite-auth-cookie",
  "disable-owner-workspace-access",
  "disable-password-auth",
  "disable-path-apps",
  "session-duration",
  "disable-session-expiry-refresh",
  "max-token-lifetime",
  "max-admin-token-lifetime",
  "default-token-lifetime",
  "external-token-encryption-keys",
  "browser-only",
  "scim-auth-header",
  "additional-csp-policy",
  "disable-workspace-sharing",
]);

/**
 * Whether an option belongs to a page. Each page is a rule over groups, so that a new option is
 * assigned automatically.
 */
export function onPage(option: DeploymentOption, page: OptionsPage): boolean {
  if (page === "all") return true;
  const group = groupPath(option);
  switch (page) {
    case "userauth":
      return (
        group === "OIDC" || group.startsWith("OAuth2") || option.flag === "disable-password-auth"
      );
    case "network":
      return group.startsWith("Networking");
    case "observability":
      return group.startsWith("Introspection");
    case "security":
      return (
        group.includes("Dangerous") ||
        group.endsWith("TLS") ||
        (option.flag !== undefined && SECURITY.has(option.flag))
      );
  }
}

export function grouped(
  options: readonly DeploymentOption[],
): { group: string; options: DeploymentOption[] }[] {
  const byGroup = new Map<string, DeploymentOption[]>();
  for (const option of options) {
    const group = groupPath(option) || "General";
    byGroup.set(group, [...(byGroup.get(group) ?? []), option]);
  }
  return [...byGroup]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([group, own]) => ({ group, options: own }));
}

/**
 * Whether an option that disables a feature is set: "Disable … Disabled" alone is ambiguous. null
 * for all other options.
 */
export function isActive(option: DeploymentOption): boolean | null {
  const shown = shownValue(option);
  return shown.kind === "boolean" && option.flag?.startsWith("disable-") ? shown.on : null;
}

/**
 * The source of a value. The server names no source for a feature that is off because nothing
 * enabled it; an empty default needs no source.
 */
export function sourceOf(option: DeploymentOption): string {
  const { kind } = shownValue(option);
  const source = option.value_source || (kind === "boolean" ? "default" : "");
  return source === "default" && kind === "unset" ? "" : source;
}

export type Shown =
  | { kind: "secret" }
  | { kind: "unset" }
  | { kind: "boolean"; on: boolean }
  | { kind: "list"; items: string[] }
  | { kind: "flags"; items: [name: string, on: boolean][] }
  | { kind: "text"; text: string };

/** The text for a value. A missing value is a secret: the server never sends those. */
export function shownValue(option: DeploymentOption): Shown {
  if (!("value" in option)) return { kind: "secret" };
  let value = option.value;
  if (isRecord(value) && "Choices" in value && "Value" in value) value = value["Value"];
  if (typeof value === "boolean") return { kind: "boolean", on: value };
  if (value === null || value === undefined || value === "") return { kind: "unset" };
  if (option.flag === "strict-transport-security" && value === 0)
    return { kind: "text", text: "Disabled" };
  if (typeof value === "number" && option.annotations?.["format_duration"] === "true")
    return { kind: "text", text: nanoseconds(value) };
  if (Array.isArray(value))
    return value.length === 0
      ? { kind: "unset" }
      : {
          kind: "list",
          items: value.map((item) =>
            typeof item === "object" ? JSON.stringify(item) : String(item),
          ),
        };
  if (isRecord(value)) {
    const entries = Object.entries(value);
    if (entries.length > 0 && entries.every(([, item]) => typeof item === "boolean"))
      return { kind: "flags", items: entries as [string, boolean][] };
    return entries.length === 0
      ? { kind: "unset" }
      : {
          kind: "list",
          items: entries.map(
            ([name, item]) =>
              `${name} → ${typeof item === "object" ? JSON.stringify(item) : String(item)}`,
          ),
        };
  }
  return { kind: "text", text: typeof value === "object" ? JSON.stringify(value) : String(value) };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** Go durations in words: exact, down to the smallest unit. */
export function nanoseconds(value: number): string {
  if (value === 0) return "0 seconds";
  let rest = Math.abs(value) / 1e9;
  if (rest < 1) return `${Math.round(rest * 1e6) / 1e3} milliseconds`;
  const parts: string[] = [];
  for (const [size, name] of UNITS) {
    const count = Math.floor(rest / size);
    if (count === 0) continue;
    rest -= count * size;
    parts.push(counted(count, name));
  }
  return (value < 0 ? "minus " : "") + parts.join(" ");
}

export const SOURCES: Readonly<Record<string, string>> = {
  default: "Default",
  env: "Environment",
  flag: "Command line",
  yaml: "Configuration file",
};
