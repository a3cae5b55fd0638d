// A daily schedule in the form and in the API: `CRON_TZ=Europe/Berlin 30 9 * 1-5`.
export interface Daily {
  time: string;
  days: readonly number[];
  timezone: string;
}

export const DAYS = [
  "Sunday",
  "Monday",
  "Tuesday",
  "Wednesday",
  "Thursday",
  "Friday",
  "Saturday",
] as const;

/** null for a schedule that is not daily. */
export function readCron(text: string): Daily | null {
  const match = /^(?:CRON_TZ=(\S+)\s+)?(\d{1,2})\s+(\d{1,2})\s+\*\s+\*\s+(\S+)$/.exec(text.trim());
  if (!match) return null;
  const days = readDays(match[4] ?? "");
  if (days === null) return null;
  const two = (value: string | undefined) => (value ?? "0").padStart(2, "0");
  return { timezone: match[1] ?? "UTC", time: `${two(match[3])}:${two(match[2])}`, days };
}

function readDays(text: string): number[] | null {
  if (text === "*") return [0, 1, 2, 3, 4, 5, 6];
  const daySet = new Set<number>();
  for (const part of text.split(",")) {
    const match = /^([0-7])(?:-([0-7]))?$/.exec(part);
    if (!match) return null;
    const from = Number(match[1]);
    const to = match[2] === undefined ? from : Number(match[2]);
    for (let day = from; day <= to; day++) daySet.add(day % 7);
  }
  return [...daySet].sort();
}

export function writeCron({ time, days, timezone }: Daily): string {
  const [hour = "0", minute = "0"] = time.split(":");
  return `CRON_TZ=${timezone} ${Number(minute)} ${Number(hour)} * * ${days.length === 7 ? "*" : [...days].sort().join(",")}`;
}

export function timezones(): string[] {
  const zones = Intl.supportedValuesOf("timeZone");
  return zones.includes("UTC") ? zones : ["UTC", ...zones];
}
