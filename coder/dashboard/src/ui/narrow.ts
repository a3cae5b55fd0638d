// Whether the screen is a phone's: the same width as `max-md` of the styles, for what has to be built otherwise, not only
// drawn otherwise.
import { useSyncExternalStore } from "react";

export const NARROW = "(width < 48rem)";

function listen(told: () => void): () => void {
  const query = window.matchMedia(NARROW);
  query.addEventListener("change", told);
  return () => query.removeEventListener("change", told);
}

export function useNarrow(): boolean {
  return useSyncExternalStore(listen, () => window.matchMedia(NARROW).matches);
}
