// The query cache, and error handling for rejected requests.
import { QueryClient } from "@tanstack/react-query";

import { mayPass, onSignedOut } from "../api/client";
import { me } from "../api/queries/session";

/**
 * The session ended elsewhere: fetching the current user again opens the sign-in dialog over the
 * page.
 */
export function askWhoIsHere(queries: QueryClient): void {
  onSignedOut(() => void queries.invalidateQueries({ queryKey: me.queryKey, exact: true }));
}

export const queries: QueryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) => mayPass(error) && count < 3,
      refetchOnWindowFocus: true,
    },
  },
});
askWhoIsHere(queries);
