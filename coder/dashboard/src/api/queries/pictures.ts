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
  const matches = all.filter((picture) =>
    words.every(
      (word) => picture.path.includes(word) || picture.words.toLowerCase().includes(word),
    ),
  );
  const begins = (picture: Picture) => (nameOf(picture).startsWith(first) ? 0 : 1);
  return matches.sort((a, b) => begins(a) - begins(b));
}

/** "docker" for /icon/docker.svg; for an emoji its words, which say more than its code points. */
export function nameOf(picture: Picture): string {
  return picture.path.startsWith("/emojis/")
    ? picture.words
    : (picture.path.split("/").at(-1) ?? "").replace(/\.svg$/, "");
}
