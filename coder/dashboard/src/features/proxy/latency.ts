// Latency from this browser to a region: the minimum of a few measurements, because the first ones
// also open the connection.
const ATTEMPTS = 4;
const LIMIT_MS = 5000;

/**
 * Milliseconds; null without an answer. The page's policy allows connections to healthy proxies
 * only.
 */
export async function measure(address: string): Promise<number | null> {
  let target: URL;
  try {
    target = new URL("/latency-check", address);
  } catch {
    return null;
  }
  let best: number | null = null;
  for (let turn = 0; turn < ATTEMPTS; turn += 1) {
    target.searchParams.set("turn", `${turn}-${performance.now()}`);
    const took = await once(target.href);
    if (took === null) return best;
    best = best === null ? took : Math.min(best, took);
  }
  return best;
}

async function once(address: string): Promise<number | null> {
  const began = performance.now();
  try {
    const answer = await fetch(address, {
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    await answer.arrayBuffer();
    return answer.ok ? performance.now() - began : null;
  } catch {
    return null;
  }
}

export function latencyTone(ms: number): "good" | "warn" | "bad" {
  return ms < 150 ? "good" : ms < 300 ? "warn" : "bad";
}
