// What a page still waits for although no request is on its way: a request that failed, and whose
// failure no part of the page shows. Without this, the page would load for ever.
import { QueryClientContext, type Query, type QueryClient } from "@tanstack/react-query";
import { useContext, useEffect, useState } from "react";

/** Milliseconds without a request after which a page that still loads is stuck. */
const QUIET_MS = 300;

export interface Stuck {
  error: Error;
  retry: () => void;
}

/** The active queries that failed without data; null while any request is on its way. */
function failedIn(queries: QueryClient): Query[] | null {
  if (queries.isFetching() > 0) return null;
  return queries
    .getQueryCache()
    .findAll({ type: "active" })
    .filter(({ state }) => state.status === "error" && state.data === undefined);
}

/** The failure that keeps a loading page from its content; null for none. */
export function useStuck(): Stuck | null {
  const queries = useContext(QueryClientContext);
  const [failed, setFailed] = useState<readonly Query[]>([]);
  useEffect(() => {
    if (!queries) return;
    let timer: number | undefined;
    const look = () => {
      window.clearTimeout(timer);
      const found = failedIn(queries);
      if (found === null || found.length === 0) setFailed((old) => (old.length > 0 ? [] : old));
      else timer = window.setTimeout(() => setFailed(failedIn(queries) ?? []), QUIET_MS);
    };
    look();
    const stop = queries.getQueryCache().subscribe(() => queueMicrotask(look));
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [queries]);
  const first = failed[0]?.state.error;
  return queries && first instanceof Error
    ? {
        error: first,
        retry: () => void Promise.all(failed.map((query) => query.fetch().catch(() => undefined))),
      }
    : null;
}
