// Times and durations in words.
import { counted } from "./words";

const STEPS: readonly (readonly [number, string])[] = [
  [31_536_000, "year"],
  [2_592_000, "month"],
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
];

/**
 * A future time may be a hundredth short: seven days do not become six a minute after they were
 * set.
 */
const ROUNDING = 1.01;

/**
 * "3 hours ago", "in 2 days", "just now"; "never" for the API's zero time. `isLost`: the connection
 * is lost, so that nothing is known to be from now.
 */
export function ago(
  text: string | null | undefined,
  now: number = Date.now(),
  isLost = false,
): string {
  const moment = text ? Date.parse(text) : NaN;
  if (Number.isNaN(moment) || moment < 0) return "never";
  const seconds = (now - moment) / 1000;
  const words = spanWords(seconds < 0 ? -seconds * ROUNDING : seconds);
  if (words === "" && isLost && seconds >= 0)
    return `${counted(Math.floor(seconds), "second")} ago`;
  if (words === "") return "just now";
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

function spanWords(seconds: number): string {
  for (const [size, name] of STEPS) {
    if (seconds >= size) return counted(Math.floor(seconds / size), name);
  }
  return "";
}

/** "1.4s", "2m 5s", "3h 10m": a duration. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${Math.floor(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h ${minutes % 60}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

/** "Nov 28, 2026, 5:34 AM UTC": a moment with the reader's time zone. */
export function dateTime(text: string | null | undefined): string {
  if (!text) return "never";
  return new Date(text).toLocaleString(undefined, {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "numeric",
    minute: "2-digit",
    timeZoneName: "short",
  });
}

/** "5:33:59 AM": the time of a line or entry whose day is known. */
export const timeOfDay = (at: string | number): string =>
  new Date(at).toLocaleTimeString(undefined, { timeStyle: "medium" });
