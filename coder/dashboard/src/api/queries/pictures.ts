// The pictures this deployment has of its own: /icon/… and /emojis/….
import { queryOptions } from "@tanstack/react-query";

import { get } from "../client";

export interface Picture {
  path: string;
  /** What it is also found by. */
  words: string;
}

export const pictures = queryOptions({
  queryKey: ["pictures"],
  queryFn: () => get<Picture[]>("/icon/index.json"),
  staleTime: Infinity,
});

/** Those with every word of `text` in their name or their words; names that begin with it come first. */
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

/** "docker" of /icon/docker.svg; an emoji's words, which say more than its code points. */
export function nameOf(one: Picture): string {
  return one.path.startsWith("/emojis/")
    ? one.words
    : (one.path.split("/").at(-1) ?? "").replace(/\.svg$/, "");
}
