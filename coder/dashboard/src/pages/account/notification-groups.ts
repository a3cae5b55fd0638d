// How the kinds of messages are ordered on the page, and which are on.
import type { NotificationPreference, NotificationTemplate } from "../../api/types";

export function isOn(template: NotificationTemplate, preferences: readonly NotificationPreference[]): boolean {
  const chosen = preferences.find((item) => item.id === template.id);
  return chosen ? !chosen.disabled : template.enabled_by_default;
}

/** As if the server had been told. */
export function withChoice(known: readonly NotificationPreference[], disabled: Readonly<Record<string, boolean>>): NotificationPreference[] {
  const updated_at = new Date().toISOString();
  return [...known.filter((item) => !(item.id in disabled)), ...Object.entries(disabled).map(([id, off]) => ({ id, disabled: off, updated_at }))];
}

/** By group, then by name; groups in the order of the alphabet. */
export function byGroup(templates: readonly NotificationTemplate[]): [string, NotificationTemplate[]][] {
  const groups = new Map<string, NotificationTemplate[]>();
  for (const template of templates) {
    const name = template.group || "Other";
    groups.set(name, [...(groups.get(name) ?? []), template]);
  }
  return [...groups].sort(([a], [b]) => a.localeCompare(b)).map(([name, items]) => [name, items.sort((a, b) => a.name.localeCompare(b.name))]);
}
