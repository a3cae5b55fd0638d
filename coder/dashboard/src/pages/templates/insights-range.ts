// The period of a template's insights: whole UTC days, kept in the address, as the API requires.
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const WEEKS_FROM_DAYS = 60; // more points than this are unreadable
const LONGEST_DAYS = 366;

export const PRESETS = [
  ["7", "Last 7 days"],
  ["30", "Last 30 days"],
  ["84", "Last 12 weeks"],
] as const;
export const CUSTOM = "custom";

/** Both days are included, as `2026-01-31`. */
export interface Days {
  from: string;
  to: string;
}

export interface Period extends Days {
  /** The id of a preset, or `CUSTOM`. */
  choice: string;
  problem: string | undefined;
}

const dayOf = (moment: number): string => new Date(moment).toISOString().slice(0, 10);

function lastDays(days: number, now: number): Days {
  return { from: dayOf(now - (days - 1) * DAY_MS), to: dayOf(now) };
}

/** NaN for a date that does not exist. */
function startOf(day: string): number {
  const start = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : NaN;
  return !Number.isNaN(start) && dayOf(start) === day ? start : NaN;
}

function problemOf({ from, to }: Days, now: number): string | undefined {
  const [first, last] = [startOf(from), startOf(to)];
  if (Number.isNaN(first) || Number.isNaN(last)) return "Choose a start and an end date.";
  if (first > last) return "The start date is after the end date.";
  if (last > now) return "The end date is in the future.";
  if ((last - first) / DAY_MS >= LONGEST_DAYS) return `Choose at most ${LONGEST_DAYS} days.`;
  return undefined;
}

/** The period of an address: `days` of a preset, or `from` and `to`. */
export function periodOf(address: URLSearchParams, now: number): Period {
  const [from, to] = [address.get("from"), address.get("to")];
  if (from !== null || to !== null) {
    const days = { from: from ?? "", to: to ?? "" };
    return { ...days, choice: CUSTOM, problem: problemOf(days, now) };
  }
  const choice = PRESETS.find(([days]) => days === address.get("days"))?.[0] ?? PRESETS[0][0];
  return { ...lastDays(Number(choice), now), choice, problem: undefined };
}

/** Today ends with the current hour: the API rejects times in the future. */
export function rangeOf(
  { from, to }: Days,
  now: number,
): { start_time: string; end_time: string; interval: string } {
  const iso = (time: number) => new Date(time).toISOString().replace(".000", "");
  const start = startOf(from);
  const end = Math.max(Math.min(startOf(to) + DAY_MS, Math.floor(now / HOUR_MS) * HOUR_MS), start);
  return {
    start_time: iso(start),
    end_time: iso(end),
    interval: (end - start) / DAY_MS > WEEKS_FROM_DAYS ? "week" : "day",
  };
}
