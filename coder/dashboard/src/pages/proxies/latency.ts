// How long the way from this browser to a region is. The smallest of a few: the first ones also open the connection.
const ATTEMPTS = 4;
const LIMIT_MS = 5000;

/** Milliseconds; null when it does not answer or may not be asked from here. */
export async function measure(address: string, origin = window.location.origin): Promise<number | null> {
  let target: URL;
  try {
    target = new URL("/latency-check", address);
  } catch {
    return null;
  }
  const own = target.origin === origin;
  // Other sites are asked as a picture: the page's policy lets pictures of any https site be asked for, and nothing else.
  if (!own && target.protocol !== "https:") return null;
  let best: number | null = null;
  for (let turn = 0; turn < ATTEMPTS; turn += 1) {
    target.searchParams.set("turn", `${turn}-${performance.now()}`);
    const took = await (own ? byFetch(target.href) : byPicture(target.href));
    if (took === null) return best;
    best = best === null ? took : Math.min(best, took);
  }
  return best;
}

async function byFetch(address: string): Promise<number | null> {
  const began = performance.now();
  try {
    const answer = await fetch(address, { cache: "no-store", credentials: "omit" });
    await answer.arrayBuffer();
    return answer.ok ? performance.now() - began : null;
  } catch {
    return null;
  }
}

/** "OK" is no picture, so it ends in an error either way; one that comes late is none. */
function byPicture(address: string): Promise<number | null> {
  return new Promise((done) => {
    const began = performance.now();
    const picture = new Image();
    const timer = window.setTimeout(() => { picture.src = ""; done(null); }, LIMIT_MS);
    picture.onload = picture.onerror = () => {
      window.clearTimeout(timer);
      done(performance.now() - began);
    };
    picture.src = address;
  });
}

export function latencyTone(ms: number): "good" | "warn" | "bad" {
  return ms < 150 ? "good" : ms < 300 ? "warn" : "bad";
}
