// Live connections that are lost at the moment: the frame says "reconnecting" while there is one.
import { useSyncExternalStore } from "react";

let signedOut = false;
const resumes = new Set<() => void>();
const lost = new Set<symbol>();
const listeners = new Set<() => void>();

/**
 * While the session is expired no connection can come back: they wait for sign-in, and none counts
 * as lost.
 */
export function setSignedOut(isOut: boolean): void {
  if (signedOut === isOut) return;
  signedOut = isOut;
  if (!isOut) for (const resume of [...resumes]) resume();
  for (const tell of listeners) tell();
}

export const isSignedOut = (): boolean => signedOut;

/** Call `again` after the user signs in again. Return the function that unsubscribes. */
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
