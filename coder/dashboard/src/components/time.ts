const STEPS: readonly [number, string][] = [[86400, "day"], [3600, "hour"], [60, "minute"]];

export function ago(text: string, now: number = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(text)) / 1000);
  for (const [size, name] of STEPS) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return `${count} ${name}${count === 1 ? "" : "s"} ago`;
  }
  return "just now";
}
