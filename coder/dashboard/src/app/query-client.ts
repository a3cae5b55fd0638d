// The query cache, and error handling for rejected requests.
import { QueryClient } from "@tanstack/react-query";

import { isTransient, onSignedOut } from "../api/client";
import { me } from "../api/queries/session";

/**
 * The session ended elsewhere: fetching the current user again opens the sign-in dialog over the
 * page.
 */
export function refetchUser(queries: QueryClient): void {
  onSignedOut(() => void queries.invalidateQueries({ queryKey: me.queryKey, exact: true }));
}

export const queries: QueryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => isTransient(error) && count < 3,
      refetchOnWindowFocus: true,
    },
  },
});
refetchUser(queries);
