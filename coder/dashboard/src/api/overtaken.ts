// What was asked for before something newer was known must not come back over it. Data is set by hand here alone: the
// linter refuses `setQueryData` elsewhere.
import type { QueryClient, QueryKey } from "@tanstack/react-query";

type Change<T> = T | ((now: T | undefined) => T | undefined);

/** What the server has just said: an answer to a change, a message. A fetch under way began earlier, and begins anew. */
export function setKnown<T>(queries: QueryClient, queryKey: QueryKey, data: Change<T>): void {
  setAhead(queries, queryKey, data);
  askAgainIfAsking(queries, queryKey);
}

/** What the server is yet to be told: asking again now would bring the older. With its answer comes `setKnown`, or `askAgainIfAsking`. */
export function setAhead<T>(queries: QueryClient, queryKey: QueryKey, data: Change<T>): void {
  queries.setQueryData<T>(queryKey, data);
}

/** The same for all whose keys begin so, of those that are there. */
export function setAheadBelow<T>(queries: QueryClient, queryKey: QueryKey, change: (now: T | undefined) => T | undefined): void {
  queries.setQueriesData<T>({ queryKey }, change);
}

/** After data was set ahead and the server has it: a fetch that is under way began earlier, and begins anew. */
export function askAgainIfAsking(queries: QueryClient, queryKey: QueryKey): void {
  if (queries.isFetching({ queryKey }) > 0) void queries.invalidateQueries({ queryKey });
}
