// Initial values of a new workspace. Values from a link, from the workspace being duplicated, or
// typed by the user take precedence over a preset that the user has not clicked: the server lets a
// preset's values win over all others.
import type { Preset } from "../../../api/types";

type Values = Readonly<Record<string, string>>;

export const presetValues = (preset: Preset): Record<string, string> =>
  Object.fromEntries(preset.Parameters.map((item) => [item.Name, item.Value]));

/** The parameters to which the preset would give another value than `own` does. */
export const changedBy = (preset: Preset, own: Values): string[] =>
  preset.Parameters.filter(({ Name, Value }) => Name in own && own[Name] !== Value).map(
    ({ Name }) => Name,
  );

export interface InitialValues {
  preset: Preset | null;
  /** The values selected with it. */
  values: Values;
  /** A preset that was not applied, and the parameters it would have changed. */
  skipped: { preset: Preset; changes: readonly string[] } | null;
}

/** `named` is the preset that a link requests; without it the template's default applies. */
export function initialValues(
  presets: readonly Preset[],
  named: string,
  own: Values,
): InitialValues {
  const requested = presets.find((item) => item.Name === named);
  const preset = requested ?? presets.find((item) => item.Default);
  if (!preset) return { preset: null, values: {}, skipped: null };
  const changes = changedBy(preset, own);
  if (changes.length === 0) return { preset, values: presetValues(preset), skipped: null };
  // A link that names a preset and another value for one of its parameters means the rest of the
  // preset.
  return {
    preset: null,
    values: requested ? { ...presetValues(preset), ...own } : {},
    skipped: { preset, changes },
  };
}
