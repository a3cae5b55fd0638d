// Days of the week as the API writes them, and the sets of them a required stop is usually asked for on.
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

/** In the order of the week, whatever order they were chosen in. */
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
  [CUSTOM, "Days of your choice"],
];

/** Which choice the days are. */
export const stopChoice = (days: Days): string =>
  USUAL.find(([, , those]) => inOrder(days).join() === those.join())?.[0] ?? CUSTOM;

/** The days of a choice; of one's own choice those that are chosen. */
export const daysOf = (choice: string, chosen: Days): string[] =>
  inOrder(USUAL.find(([value]) => value === choice)?.[2] ?? chosen);
