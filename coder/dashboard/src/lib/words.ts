// Counts with their nouns. The linter rejects choosing between singular and plural elsewhere.

/** Return the noun for a count. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  count === 1 ? one : many;

/** "1 member", "2 members", "no members". */
export const counted = (count: number, one: string, many?: string): string =>
  `${count === 0 ? "no" : count.toLocaleString()} ${plural(count, one, many)}`;

/** The same at the beginning of a sentence. */
export const countedAtStart = (count: number, one: string, many?: string): string => {
  const text = counted(count, one, many);
  return text.charAt(0).toUpperCase() + text.slice(1);
};

/** The number of active developers of a template, after "Used by". */
export const usedBy = (developers: number): string =>
  developers === 0 ? "no active developers" : counted(developers, "developer");
