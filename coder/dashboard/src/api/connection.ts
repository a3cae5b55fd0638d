// Which live connections are lost at the moment: the frame says "reconnecting" while there is any.
import { useSyncExternalStore } from "react";

let signedOut = false;
const resumes = new Set<() => void>();
const lost = new Set<symbol>();
const listeners = new Set<() => void>();

/** While the session has ended no connection can come back: they wait for signing in, and none is "lost". */
export function setSignedOut(isOut: boolean): void {
  if (signedOut === isOut) return;
  signedOut = isOut;
  if (!isOut) for (const resume of [...resumes]) resume();
  for (const tell of listeners) tell();
}

export const isSignedOut = (): boolean => signedOut;

/** Called when somebody has signed in again. Returns how to stop being called. */
export function onSignedIn(resume: () => void): () => void {
  resumes.add(resume);
  return () => resumes.delete(resume);
}

export function setLost(connection: symbol, isLost: boolean): void {
  if (lost.has(connection) === isLost) return;
  if (isLost) lost.add(connection);
  else lost.delete(connection);
  for (const tell of listeners) tell();
}

export function useConnectionLost(): boolean {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => lost.size > 0 && !signedOut,
  );
}
