// The cache of answers and what happens when one is refused.
import { QueryClient } from "@tanstack/react-query";

import { mayPass, onSignedOut } from "../api/client";
import { me } from "../api/queries/session";

/** A session that ended elsewhere: asking who is here again shows the sign-in dialog over the page. */
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
