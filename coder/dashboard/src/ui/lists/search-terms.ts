// The query language of the lists, `key:value key:"two words" word`: reading and replacing one term
// of it.
const TERM = /(?:([\w-]+):)?(?:"([^"]*)"|([^\s"]+))/g;

export function termOf(filter: string, key: string): string | null {
  for (const match of filter.matchAll(TERM)) {
    if (match[1] === key) return match[2] ?? match[3] ?? "";
  }
  return null;
}

/** `filter` with `key:value` in place of any other term with that key; null removes the term. */
export function withTerm(filter: string, key: string, value: string | null): string {
  const kept = [...filter.matchAll(TERM)]
    .filter((match) => match[1] !== key)
    .map((match) => match[0]);
  if (value !== null)
    kept.push(`${key}:${/[\s"]/.test(value) ? `"${value.replaceAll('"', "")}"` : value}`);
  return kept.join(" ");
}
