// What reading and arriving do to the inbox in memory. One place, so that the bell and the page never disagree.
import { useQueryClient, type InfiniteData } from "@tanstack/react-query";

import { put } from "../../api/client";
import { askAgainIfAsking, setAhead, setAheadBelow } from "../../api/overtaken";
import { unread } from "../../api/queries/inbox";
import type { GetInboxNotificationResponse, InboxNotification, ListInboxNotificationsResponse } from "../../api/types";
import { toast } from "../../ui/toast";

type Pages = InfiniteData<ListInboxNotificationsResponse>;

/** A new message before all others; one that is there already replaces itself. */
export function withArrived(list: ListInboxNotificationsResponse, { notification, unread_count }: GetInboxNotificationResponse): ListInboxNotificationsResponse {
  return { notifications: [notification, ...list.notifications.filter((other) => other.id !== notification.id)], unread_count };
}

export function withRead(list: ListInboxNotificationsResponse, id: string | null, at: string | null, count: number): ListInboxNotificationsResponse {
  return { notifications: list.notifications.map((item) => (id === null || item.id === id ? { ...item, read_at: at } : item)), unread_count: count };
}

export function useInboxActions() {
  const queries = useQueryClient();
  const change = (how: (list: ListInboxNotificationsResponse, first: boolean) => ListInboxNotificationsResponse) => {
    setAhead<ListInboxNotificationsResponse>(queries, unread.queryKey, (list) => (list ? how(list, true) : list));
    setAheadBelow<Pages>(queries, ["inbox", "pages"], (data) => (data ? { ...data, pages: data.pages.map((page, index) => how(page, index === 0)) } : data));
  };
  const failed = (error: unknown) => {
    toast.failed("The inbox was not changed", error);
    void queries.invalidateQueries({ queryKey: ["inbox"] });
  };
  return {
    arrived: (answer: GetInboxNotificationResponse) => {
      change((list, first) => (first ? withArrived(list, answer) : { ...list, unread_count: answer.unread_count }));
      askAgainIfAsking(queries, ["inbox"]);
    },
    /** After a lost connection: what came meanwhile was not told. */
    refresh: () => void queries.invalidateQueries({ queryKey: ["inbox"] }),
    read: (message: InboxNotification, is_read: boolean) => {
      if ((message.read_at !== null) === is_read) return;
      const step = is_read ? -1 : 1;
      const at = is_read ? new Date().toISOString() : null;
      change((list) => withRead(list, message.id, at, Math.max(0, list.unread_count + step)));
      void put<GetInboxNotificationResponse>(`/api/v2/notifications/inbox/${message.id}/read-status`, { is_read }).then((answer) => {
        // Once more: what was asked before may have come meanwhile, with the message as it was.
        change((list) => withRead(list, message.id, at, answer.unread_count));
        askAgainIfAsking(queries, ["inbox"]);
      }, failed);
    },
    readAll: () => {
      change((list) => withRead(list, null, new Date().toISOString(), 0));
      void put("/api/v2/notifications/inbox/mark-all-as-read").then(() => askAgainIfAsking(queries, ["inbox"]), failed);
    },
  };
}
