// Numbers with their words. The linter refuses to choose between one and many elsewhere.

/** The word for so many of it. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  count === 1 ? one : many;

/** "1 member", "2 members", "no members". */
export const counted = (count: number, one: string, many?: string): string =>
  `${count === 0 ? "no" : count.toLocaleString()} ${plural(count, one, many)}`;

/** The same where a sentence begins with it. */
export const countedAtStart = (count: number, one: string, many?: string): string => {
  const text = counted(count, one, many);
  return text.charAt(0).toUpperCase() + text.slice(1);
};

/** Who works with a template, after "Used by". */
export const usedBy = (developers: number): string =>
  developers === 0 ? "nobody when last counted" : counted(developers, "developer");
