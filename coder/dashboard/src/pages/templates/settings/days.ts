// Days of the week in the API's spelling, and the common choices for a required stop.
export const WEEK = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
] as const;

export type Days = readonly string[];

/** In the order of the week, regardless of the order chosen. */
export const inOrder = (days: Days): string[] => WEEK.filter((day) => days.includes(day));

export const withDay = (days: Days, day: string, on: boolean): string[] =>
  inOrder(on ? [...days, day] : days.filter((other) => other !== day));

export const CUSTOM = "custom";

const USUAL: readonly (readonly [value: string, text: string, days: Days])[] = [
  ["off", "Off", []],
  ["daily", "Daily", WEEK],
  ["saturday", "Saturday", ["saturday"]],
  ["sunday", "Sunday", ["sunday"]],
];

export const STOP_CHOICES: readonly (readonly [value: string, text: string])[] = [
  ...USUAL.map(([value, text]) => [value, text] as const),
  [CUSTOM, "Custom"],
];

/** The choice that matches the days. */
export const stopChoice = (days: Days): string =>
  USUAL.find(([, , those]) => inOrder(days).join() === those.join())?.[0] ?? CUSTOM;

/** The days of a choice; for a custom choice the selected days. */
export const daysOf = (choice: string, chosen: Days): string[] =>
  inOrder(USUAL.find(([value]) => value === choice)?.[2] ?? chosen);
