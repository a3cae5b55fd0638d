// Amounts of data in readable units: "1.4 MiB".
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function byteSize(count: number): string {
  let value = Math.max(0, count);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ""}`;
}
