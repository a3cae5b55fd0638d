// How lists look: rows on a page and density. Kept in this browser, for all lists.
import { useSyncExternalStore } from "react";

export type Density = "normal" | "compact";
export const SIZES = [25, 50, 100] as const;

interface ListView {
  size: number;
  density: Density;
}

const KEY = "list-view";
const USUAL: ListView = { size: SIZES[0], density: "normal" };
const listeners = new Set<() => void>();
let current = stored();

function stored(): ListView {
  try {
    const read = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<ListView>;
    return {
      size: SIZES.find((size) => size === read.size) ?? USUAL.size,
      density: read.density === "compact" ? "compact" : "normal",
    };
  } catch {
    return USUAL; // storage is blocked, or holds something else
  }
}

export function setListView(change: Partial<ListView>): void {
  current = { ...current, ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // only for this page then
  }
  for (const listener of listeners) listener();
}

export const useListView = (): ListView =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
