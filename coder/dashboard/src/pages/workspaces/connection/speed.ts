// The speed test of a connection, leg by leg: browser to server, then server to agent. Bytes and
// time of each part are limited, here and by the server.
import { getBytes, post, upload, withQuery } from "../../../api/client";
import type { SpeedTestResult } from "../../../api/types";

export interface Speed {
  /** Megabits a second towards the browser, and from it. */
  browser: { down: number; up: number };
  agent: { down: number; up: number };
  /** The path of the server’s packets to the agent; empty if unknown. */
  via: SpeedTestResult["via"];
}

/** The first part finds out how many bytes the second may have. */
export const FIRST_BYTES = 256 << 10;
export const MOST_BYTES = 8 << 20;
/** Milliseconds that the second part should take. */
export const AIM_MS = 2000;
const BLOCK = 64 << 10; // the most random bytes of one call

/** Bytes of the second part; 0 where the first one took long enough. */
export function nextBytes(bytes: number, ms: number): number {
  if (ms >= AIM_MS) return 0;
  return Math.min(MOST_BYTES, Math.round((bytes * AIM_MS) / Math.max(ms, 1)));
}

/** Megabits (10^6) a second. */
export const mbits = (bytes: number, ms: number): number => (bytes * 8) / 1000 / Math.max(ms, 1);

type Clock = () => number;

async function timed(transfer: (bytes: number) => Promise<unknown>, now: Clock): Promise<number> {
  const measure = async (bytes: number) => {
    const began = now();
    await transfer(bytes);
    return now() - began;
  };
  const first = await measure(FIRST_BYTES);
  const bytes = nextBytes(FIRST_BYTES, first);
  return bytes > FIRST_BYTES ? mbits(bytes, await measure(bytes)) : mbits(FIRST_BYTES, first);
}

function randomBlob(bytes: number): Blob {
  const block = crypto.getRandomValues(new Uint8Array(BLOCK));
  return new Blob(Array.from({ length: Math.ceil(bytes / BLOCK) }, () => block)).slice(0, bytes);
}

/** Run all parts, one after the other: they would measure each other. `onPart` names each. */
export async function measureSpeed(
  agent: string,
  onPart: (part: string) => void,
  now: Clock = () => performance.now(),
): Promise<Speed> {
  const path = `/api/v2/workspaceagents/${agent}/speedtest`;
  onPart("Server to this browser");
  const down = await timed((bytes) => getBytes(withQuery(`${path}/payload`, { bytes })), now);
  onPart("This browser to server");
  const up = await timed(
    (bytes) => upload(`${path}/payload`, randomBlob(bytes), "application/octet-stream"),
    now,
  );
  onPart("Agent to server");
  const toServer = await post<SpeedTestResult>(path, { direction: "down" });
  onPart("Server to agent");
  const toAgent = await post<SpeedTestResult>(path, { direction: "up" });
  return {
    browser: { down, up },
    agent: { down: toServer.mbits, up: toAgent.mbits },
    via: toAgent.via || toServer.via,
  };
}

/** "42 Mbit/s", "0.8 Mbit/s". */
export const speedText = (value: number): string =>
  `${value < 10 ? value.toFixed(1) : Math.round(value)} Mbit/s`;
