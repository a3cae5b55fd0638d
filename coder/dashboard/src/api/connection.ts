// Live connections that are lost at the moment: the frame says "reconnecting" while there is one.
import { useEffect, useState, useSyncExternalStore } from "react";

/** Most dropped connections are back sooner: a message would only flash. */
const NOTICEABLE_MS = 2000;

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
  for (const listener of listeners) listener();
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
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useConnectionLost(): boolean {
  return useSyncExternalStore(subscribe, () => lost.size > 0 && !signedOut);
}

const awaited = new Set<symbol>();

/** Whether the first message of a connection may still arrive soon. */
export function setAwaited(connection: symbol, isAwaited: boolean): void {
  if (awaited.has(connection) === isAwaited) return;
  if (isAwaited) awaited.add(connection);
  else awaited.delete(connection);
  for (const listener of listeners) listener();
}

/** Return whether a connection has not delivered its first message yet. */
export const useAwaited = (): boolean => useSyncExternalStore(subscribe, () => awaited.size > 0);

/** Return whether a connection has been lost long enough to tell the user. */
export function useLongLost(): boolean {
  const lost = useConnectionLost();
  const [long, setLong] = useState(false);
  useEffect(() => {
    if (!lost) return;
    const timer = window.setTimeout(() => setLong(true), NOTICEABLE_MS);
    return () => {
      window.clearTimeout(timer);
      setLong(false);
    };
  }, [lost]);
  return lost && long;
}
