// Whether single keys are shortcuts. Speech input and some helpers type letters that were not meant for
// the page (WCAG 2.1.4), so a user can turn them off, for this browser.
import { useSyncExternalStore } from "react";

const KEY = "single-key-shortcuts";
const OFF = "off";
const listeners = new Set<() => void>();
let on = stored();

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) !== OFF;
  } catch {
    return true; // storage is blocked
  }
}

export const singleKeysAreOn = (): boolean => on;

export function setSingleKeys(next: boolean): void {
  on = next;
  try {
    if (next) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, OFF);
  } catch {
    // only for this page then
  }
  for (const listener of listeners) listener();
}

export const useSingleKeys = (): boolean =>
  useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, singleKeysAreOn);
