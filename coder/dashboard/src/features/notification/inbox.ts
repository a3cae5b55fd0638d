// Cache updates for new and read messages. In one module, so that the bell and the page always
// agree.
import { useQueryClient, type InfiniteData } from "@tanstack/react-query";

import { put } from "../../api/client";
import { changeOptimistically, shownIn, setServerDataBelow } from "../../api/optimistic";
import { unread } from "../../api/queries/inbox";
import type {
  GetInboxNotificationResponse,
  InboxNotification,
  ListInboxNotificationsResponse,
} from "../../api/types";
import { toast } from "../../ui/toast";

type Pages = InfiniteData<ListInboxNotificationsResponse>;

/** Put a new message before all others; a message that is already there is replaced. */
export function withArrived(
  list: ListInboxNotificationsResponse,
  { notification, unread_count }: GetInboxNotificationResponse,
): ListInboxNotificationsResponse {
  return {
    notifications: [
      notification,
      ...list.notifications.filter((other) => other.id !== notification.id),
    ],
    unread_count,
  };
}

export function withRead(
  list: ListInboxNotificationsResponse,
  id: string | null,
  at: string | null,
  count: number,
): ListInboxNotificationsResponse {
  return {
    notifications: list.notifications.map((item) =>
      id === null || item.id === id ? { ...item, read_at: at } : item,
    ),
    unread_count: count,
  };
}

/**
 * Mark one message read or unread and update the count. A message already in that state is not
 * counted twice.
 */
export function withStep(
  list: ListInboxNotificationsResponse,
  id: string,
  at: string | null,
): ListInboxNotificationsResponse {
  const existing = list.notifications.find((item) => item.id === id);
  if (existing && (existing.read_at !== null) === (at !== null)) return list;
  return withRead(list, id, at, Math.max(0, list.unread_count + (at === null ? 1 : -1)));
}

const PAGES = ["inbox", "pages"];
type InboxUpdate = (
  list: ListInboxNotificationsResponse,
  first: boolean,
) => ListInboxNotificationsResponse;
const inPages =
  (applyUpdate: InboxUpdate) =>
  (data: Pages): Pages => ({
    ...data,
    pages: data.pages.map((page, index) => applyUpdate(page, index === 0)),
  });

export function useInboxActions() {
  const queries = useQueryClient();
  const applyServerState = (applyUpdate: InboxUpdate) => {
    setServerDataBelow<ListInboxNotificationsResponse>(queries, unread.queryKey, (list) =>
      applyUpdate(list, true),
    );
    setServerDataBelow<Pages>(queries, PAGES, inPages(applyUpdate));
  };
  const ahead = <T>(applyUpdate: InboxUpdate, send: () => Promise<T>) =>
    changeOptimistically(
      queries,
      [
        shownIn<ListInboxNotificationsResponse>(unread.queryKey, (list) => applyUpdate(list, true)),
        shownIn<Pages>(PAGES, inPages(applyUpdate)),
      ],
      send,
    );
  const failed = (error: unknown) => {
    toast.failed("Failed to update the inbox", error);
  };
  return {
    arrived: (answer: GetInboxNotificationResponse) =>
      applyServerState((list, first) =>
        first ? withArrived(list, answer) : { ...list, unread_count: answer.unread_count },
      ),
    /** After a lost connection: messages sent meanwhile were not received. */
    refresh: () => void queries.invalidateQueries({ queryKey: ["inbox"] }),
    read: (message: InboxNotification, is_read: boolean) => {
      if ((message.read_at !== null) === is_read) return;
      const at = is_read ? new Date().toISOString() : null;
      void ahead(
        (list) => withStep(list, message.id, at),
        () =>
          put<GetInboxNotificationResponse>(
            `/api/v2/notifications/inbox/${message.id}/read-status`,
            { is_read },
          ),
      ).then(
        (answer) => applyServerState((list) => ({ ...list, unread_count: answer.unread_count })),
        failed,
      );
    },
    readAll: () => {
      const at = new Date().toISOString();
      void ahead(
        (list) => withRead(list, null, at, 0),
        () => put("/api/v2/notifications/inbox/mark-all-as-read"),
      ).catch(failed);
    },
  };
}
