// The bell of the top bar: the number of unread messages, and the newest messages.
import { useQuery } from "@tanstack/react-query";
import { Bell, CheckCheck, Settings } from "lucide-react";
import { useState } from "react";
import { Link } from "react-router";

import { unread } from "../../api/queries/inbox";
import { useSocket } from "../../api/socket";
import type { GetInboxNotificationResponse } from "../../api/types";
import { Button, buttonClass, IconButton } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { Popover } from "../../ui/Popover";
import { cx } from "../../ui/cx";
import { useInboxActions } from "./inbox";
import { Message } from "./Message";

const SHOWN = 8;
const MOST = 99;

export function InboxBell() {
  const inbox = useQuery(unread);
  const [open, setOpen] = useState(false);
  const actions = useInboxActions();
  useSocket("/api/v2/notifications/inbox/watch", {
    // Messages that arrive between the first answer and this moment would be missed.
    onOpen: () => actions.refresh(),
    onMessage: (data) => actions.arrived(data as GetInboxNotificationResponse),
  });
  const count = inbox.data?.unread_count ?? 0;
  const shown = (inbox.data?.notifications ?? []).slice(0, SHOWN);
  return (
    <Popover
      label="Inbox"
      className="w-108"
      open={open}
      onOpenChange={setOpen}
      trigger={
        <IconButton
          label={count === 0 ? "Inbox, no unread messages" : `Inbox, ${count} unread`}
          className="relative"
          data-testid="inbox-bell"
        >
          <Bell />
          {count > 0 ? (
            <span
              aria-hidden="true"
              data-testid="unread-count"
              className={cx(
                "absolute -top-0.5 -right-0.5 min-w-4 rounded-full bg-solid-bad px-1 text-center",
                "text-[0.65rem] leading-4 font-semibold text-on-bad tabular-nums",
              )}
            >
              {count > MOST ? `${MOST}+` : count}
            </span>
          ) : null}
        </IconButton>
      }
    >
      <header className="flex items-center gap-1 border-b border-line py-2 pr-2 pl-4">
        <h2 className="flex-1 font-semibold">Inbox</h2>
        {count > 0 ? (
          <Button size="sm" variant="quiet" icon={<CheckCheck />} onClick={actions.readAll}>
            Mark all as read
          </Button>
        ) : null}
        <Link
          to="/settings/notifications"
          aria-label="Notification settings"
          title="Notification settings"
          className={buttonClass("quiet", "sm", "w-7 px-0!")}
          onClick={() => setOpen(false)}
        >
          <Settings />
        </Link>
      </header>
      {inbox.isError ? (
        <div className="p-4">
          <Failure error={inbox.error} retry={() => void inbox.refetch()} />
        </div>
      ) : null}
      {inbox.data && shown.length === 0 ? (
        <p className="px-4 py-8 text-center text-base text-muted">
          No messages. Notifications about your workspaces and your account appear here.
        </p>
      ) : null}
      {/* A link in a message leads to another page, so the panel closes. */}
      {/* eslint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions */}
      <div
        className="max-h-[60vh] divide-y divide-line overflow-y-auto"
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest("a")) setOpen(false);
        }}
      >
        {shown.map((message) => (
          <Message
            key={message.id}
            message={message}
            compact
            onRead={(read) => actions.read(message, read)}
          />
        ))}
      </div>
      <footer className="border-t border-line p-1.5">
        <Link
          to="/inbox"
          className={buttonClass("quiet", "sm", "w-full")}
          onClick={() => setOpen(false)}
        >
          See all messages
        </Link>
      </footer>
    </Popover>
  );
}
