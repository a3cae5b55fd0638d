// The value of a list parameter: a JSON array of strings.
export function readList(value: string): string[] {
  try {
    const parsed: unknown = JSON.parse(value || "[]");
    return Array.isArray(parsed) ? parsed.map(String) : [];
  } catch {
    return [];
  }
}

export const writeList = (items: readonly string[]): string => JSON.stringify(items);
