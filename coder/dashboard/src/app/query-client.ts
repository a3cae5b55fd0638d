// The cache of answers and what happens when one is refused.
import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";

import { ApiError } from "../api/client";
import { me } from "../api/queries/session";

// A session that ended elsewhere: asking who is here again shows the sign-in dialog over the page.
function sessionEnded(error: Error): void {
  if (error instanceof ApiError && error.status === 401) void queries.invalidateQueries({ queryKey: me.queryKey, exact: true });
}

export const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: sessionEnded }),
  mutationCache: new MutationCache({ onError: sessionEnded }),
  defaultOptions: {
    queries: {
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 3,
      refetchOnWindowFocus: true,
    },
  },
});
