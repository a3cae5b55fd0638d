// Whether the page has what it needs, so that the rest may load, or that the page can be shown.
import { useIsFetching } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { useAwaited } from "../../api/connection";

/** Return true once nothing has been pending for a moment, at the latest after `limitMs`; it stays true. */
function useOnceIdle(pending: boolean, pauseMs: number, limitMs: number): boolean {
  const [idle, setIdle] = useState(false);
  useEffect(() => {
    if (idle || pending) return;
    const timer = window.setTimeout(() => setIdle(true), pauseMs);
    return () => window.clearTimeout(timer);
  }, [idle, pending, pauseMs]);
  useEffect(() => {
    const timer = window.setTimeout(() => setIdle(true), limitMs);
    return () => window.clearTimeout(timer);
  }, [limitMs]);
  return idle;
}

/** Return true once no request has been pending for a moment, at the latest after some seconds. */
export const useQuiet = (): boolean => useOnceIdle(useIsFetching() > 0, 150, 4000);

/**
 * Return true once the parts of the first page are there: shown one by one, each would move those
 * below it. A slow server does not delay the page for longer than the limit.
 */
export function useComplete(): boolean {
  const fetching = useIsFetching() > 0;
  const awaited = useAwaited();
  return useOnceIdle(fetching || awaited, 60, 1500);
}
