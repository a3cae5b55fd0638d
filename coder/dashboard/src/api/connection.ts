// Which live connections are lost at the moment: the frame says "reconnecting" while there is any.
import { useSyncExternalStore } from "react";

const lost = new Set<symbol>();
const listeners = new Set<() => void>();

export function setLost(connection: symbol, isLost: boolean): void {
  if (lost.has(connection) === isLost) return;
  if (isLost) lost.add(connection);
  else lost.delete(connection);
  for (const tell of listeners) tell();
}

export function useConnectionLost(): boolean {
  return useSyncExternalStore((tell) => { listeners.add(tell); return () => listeners.delete(tell); }, () => lost.size > 0);
}
