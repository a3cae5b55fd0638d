// Order of the notification kinds on the page, and which kinds are on.
import type { NotificationPreference, NotificationTemplate } from "../../api/types";

export function isOn(
  template: NotificationTemplate,
  preferences: readonly NotificationPreference[],
): boolean {
  const chosen = preferences.find((item) => item.id === template.id);
  return chosen ? !chosen.disabled : template.enabled_by_default;
}

/** The state as if the server had stored the change. */
export function withChoice(
  preferences: readonly NotificationPreference[],
  disabled: Readonly<Record<string, boolean>>,
): NotificationPreference[] {
  const updated_at = new Date().toISOString();
  return [
    ...preferences.filter((item) => !(item.id in disabled)),
    ...Object.entries(disabled).map(([id, off]) => ({ id, disabled: off, updated_at })),
  ];
}

/** The groups that users look for first; all other groups follow alphabetically. */
const FIRST: readonly string[] = [
  "Workspace Events",
  "Task Events",
  "Template Events",
  "User Events",
  "Notification Events",
  "Custom Events",
];
/**
 * Clients know these kinds of messages by their ids; this server never sends them, so the page does
 * not list them.
 */
export const NEVER_SENT: readonly string[] = [
  "AI Cost Control Admin Events",
  "AI Cost Control Events",
  "Chat Events",
];

/** Sorted by group, then by name. */
export function byGroup(
  templates: readonly NotificationTemplate[],
): [string, NotificationTemplate[]][] {
  const groups = new Map<string, NotificationTemplate[]>();
  for (const template of templates) {
    const name = template.group || "Other";
    if (!NEVER_SENT.includes(name)) groups.set(name, [...(groups.get(name) ?? []), template]);
  }
  const rank = (name: string) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...groups]
    .sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b))
    .map(([name, items]) => [name, items.sort((a, b) => a.name.localeCompare(b.name))]);
}
