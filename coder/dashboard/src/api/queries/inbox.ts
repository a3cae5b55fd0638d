// The user's inbox: messages, newest first, and the number of unread ones.
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { get, withQuery } from "../client";
import type { ListInboxNotificationsResponse } from "../types";

export const INBOX_PAGE = 25; // the server's page size

export const unread = queryOptions({
  queryKey: ["inbox", "unread"],
  queryFn: () => get<ListInboxNotificationsResponse>("/api/v2/notifications/inbox"),
  staleTime: 60_000,
});

export const inboxPages = (status: "all" | "unread") =>
  infiniteQueryOptions({
    queryKey: ["inbox", "pages", status],
    queryFn: ({ pageParam }) =>
      get<ListInboxNotificationsResponse>(
        withQuery("/api/v2/notifications/inbox", {
          read_status: status === "all" ? undefined : status,
          starting_before: pageParam,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last) =>
      last.notifications.length < INBOX_PAGE ? undefined : last.notifications.at(-1)?.id,
  });
