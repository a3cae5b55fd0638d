// The icons that the deployment ships: /icon/… and /emojis/….
import { queryOptions } from "@tanstack/react-query";

import { get } from "../client";

export interface Picture {
  path: string;
  /** Further search words. */
  words: string;
}

export const pictures = queryOptions({
  queryKey: ["pictures"],
  queryFn: () => get<Picture[]>("/icon/index.json"),
  staleTime: Infinity,
});

/**
 * The icons whose name or words contain every word of `text`; names that start with it come first.
 */
export function matching(all: readonly Picture[], text: string): Picture[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const [first] = words;
  if (first === undefined) return [...all];
  const found = all.filter((one) =>
    words.every((word) => one.path.includes(word) || one.words.toLowerCase().includes(word)),
  );
  const begins = (one: Picture) => (nameOf(one).startsWith(first) ? 0 : 1);
  return found.sort((a, b) => begins(a) - begins(b));
}

/** "docker" for /icon/docker.svg; for an emoji its words, which say more than its code points. */
export function nameOf(one: Picture): string {
  return one.path.startsWith("/emojis/")
    ? one.words
    : (one.path.split("/").at(-1) ?? "").replace(/\.svg$/, "");
}
