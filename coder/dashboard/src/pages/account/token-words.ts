// Permissions and lifetime of a token, in words and in the API's numbers.
import type { APIKey } from "../../api/types";
import { counted } from "../../lib/words";

const DAY_S = 86_400;
const NS = 1e9;
const MONTH_H = 720;

export function isExpired(token: Pick<APIKey, "expires_at">, now = Date.now()): boolean {
  return Date.parse(token.expires_at) <= now;
}

const EVERYTHING = new Set(["all", "coder:all"]);

export function scopesText(scopes: readonly string[]): string {
  if (scopes.length === 0 || scopes.some((scope) => EVERYTHING.has(scope)))
    return "All of your permissions";
  const first = scopes[0] ?? "";
  return scopes.length === 1
    ? (SCOPE_TEXTS[first]?.[0] ?? first)
    : counted(scopes.length, "permission");
}

/** Composite scopes; each stands for several of the fine-grained ones. */
export const SCOPE_TEXTS: Readonly<Record<string, readonly [text: string, hint: string]>> = {
  "coder:workspaces.access": ["Use workspaces", "Connect by SSH, open applications and ports."],
  "coder:workspaces.operate": ["Start and stop workspaces", "Builds of existing workspaces."],
  "coder:workspaces.create": ["Create workspaces", "From the templates you can use."],
  "coder:workspaces.delete": ["Delete workspaces", "Including all of their resources."],
  "coder:templates.build": ["Build template versions", "Uploads and imports, as in CI."],
  "coder:templates.author": ["Author templates", "Create, update, promote and delete templates."],
  "coder:application_connect": [
    "Open applications only",
    "Applications of your workspaces and nothing else.",
  ],
  "coder:apikeys.manage_self": ["Manage your tokens", "Create and revoke your tokens."],
};

/** The lifetimes in days that the deployment allows; the longest is always included. */
export function lifetimes(maxNs: number): number[] {
  const limit = Math.floor(maxNs / NS / DAY_S);
  const choices = [7, 30, 60, 90, 365].filter((days) => limit <= 0 || days <= limit);
  return choices.length > 0 ? choices : [Math.max(1, limit)];
}

/** A month, or the maximum for this user if that is shorter. */
export function suggestedHours(maxNs: number): number {
  const limit = Math.floor(maxNs / NS / 3600);
  return limit > 0 ? Math.min(MONTH_H, limit) : MONTH_H;
}

export function daysToNs(days: number): number {
  return Math.round(days * DAY_S) * NS;
}

/** Whole days from now to the end of the chosen date; NaN for none. */
export function daysUntil(date: string, now = Date.now()): number {
  return (Date.parse(`${date}T23:59:59`) - now) / 1000 / DAY_S;
}
