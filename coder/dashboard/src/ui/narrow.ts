// Whether the screen is narrow: the same width as `max-md` of the styles, for layouts that differ
// in structure, not only in style.
import { useSyncExternalStore } from "react";

export const NARROW = "(width < 48rem)";

function listen(listener: () => void): () => void {
  const query = window.matchMedia(NARROW);
  query.addEventListener("change", listener);
  return () => query.removeEventListener("change", listener);
}

export function useNarrow(): boolean {
  return useSyncExternalStore(listen, () => window.matchMedia(NARROW).matches);
}
