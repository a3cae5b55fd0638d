// What was asked for before something newer was known must not come back over it.
import type { QueryClient, QueryKey } from "@tanstack/react-query";

/** Call it after data was set by hand (a message came, a change was answered): a fetch that is under way began earlier, and begins anew. */
export function askAgainIfAsking(queries: QueryClient, queryKey: QueryKey): void {
  if (queries.isFetching({ queryKey }) > 0) void queries.invalidateQueries({ queryKey });
}
