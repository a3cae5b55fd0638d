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

const hasFailed = ({ state }: Query) => state.status === "error" && state.data === undefined;

/** The error of the first active query that failed without data; null while any request is on its way. */
function failureOf(queries: QueryClient): Error | null {
  if (queries.isFetching() > 0) return null;
  return queries.getQueryCache().findAll({ type: "active" }).find(hasFailed)?.state.error ?? null;
}

/** The failure that keeps a loading page from its content; null for none. */
export function useStuck(): Stuck | null {
  const queries = useContext(QueryClientContext);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    if (!queries) return;
    let timer: number | undefined;
    const look = () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => setError(failureOf(queries)), QUIET_MS);
    };
    look();
    const stop = queries.getQueryCache().subscribe(look);
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, [queries]);
  return queries && error
    ? {
        error,
        retry: () => void queries.refetchQueries({ type: "active", predicate: hasFailed }),
      }
    : null;
}
