// A message of the inbox: the event, its time, and the available actions.
import { Bell, Check, CircleAlert, MessageSquareText, Undo2, UserRound } from "lucide-react";
import { lazy, Suspense } from "react";
import { Link } from "react-router";

import type { InboxNotification, InboxNotificationAction } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { safeImage } from "../../ui/Avatar";
import { Button, buttonClass, IconButton } from "../../ui/Button";
import { cx } from "../../ui/cx";
import { ownPath } from "./own-path";

const Markdown = lazy(() => import("../../ui/text/Markdown"));
const ICONS: Record<string, typeof Bell> = {
  DEFAULT_ICON_WORKSPACE: CircleAlert,
  DEFAULT_ICON_ACCOUNT: UserRound,
  DEFAULT_ICON_TEMPLATE: MessageSquareText,
};

interface MessageProps {
  message: InboxNotification;
  onRead: (read: boolean) => void;
  compact?: boolean;
}

export function Message({ message, onRead, compact = false }: MessageProps) {
  const Icon = ICONS[message.icon] ?? Bell;
  const picture = message.icon.startsWith("DEFAULT_ICON") ? null : safeImage(message.icon);
  const fresh = message.read_at === null;
  const readLabel = fresh ? "Mark as read" : "Mark as unread";
  return (
    <article
      aria-label={message.title || "Notification"}
      className={cx("flex gap-3 px-4 py-3", fresh && "bg-accent-soft/50")}
      data-testid="inbox-notification"
    >
      <span className="mt-0.5 grid size-8 shrink-0 place-items-center rounded-full border border-line bg-surface text-muted">
        {picture ? (
          <img src={picture} alt="" className="size-4.5 object-contain" />
        ) : (
          <Icon className="size-4" aria-hidden="true" />
        )}
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex items-baseline gap-2">
          <p
            className={cx(
              "min-w-0 flex-1 [overflow-wrap:anywhere]",
              fresh ? "font-semibold" : "font-medium",
            )}
          >
            {fresh ? <span className="sr-only">Unread: </span> : null}
            {message.title}
          </p>
          <span className="shrink-0 text-xs text-muted">
            <Ago at={message.created_at} />
          </span>
          {compact ? (
            <IconButton
              size="sm"
              className="-my-1 shrink-0 self-center"
              label={readLabel}
              onClick={() => onRead(fresh)}
            >
              {fresh ? <Check /> : <Undo2 />}
            </IconButton>
          ) : null}
        </div>
        <div className={cx("mt-0.5 text-sm text-muted", compact && "line-clamp-3")}>
          <Suspense fallback={null}>
            <Markdown text={message.content.replaceAll("by ****", "by an unknown user")} />
          </Suspense>
        </div>
        {compact && message.actions.length === 0 ? null : (
          <div
            className={cx("mt-2 flex flex-wrap gap-1.5", message.actions.length === 0 && "-ml-2.5")}
          >
            {message.actions.map((action) => (
              <Action
                key={action.label + action.url}
                action={action}
                onFollow={() => onRead(true)}
              />
            ))}
            {compact ? null : (
              <Button size="sm" variant="quiet" onClick={() => onRead(fresh)}>
                {readLabel}
              </Button>
            )}
          </div>
        )}
      </div>
    </article>
  );
}

function Action({ action, onFollow }: { action: InboxNotificationAction; onFollow: () => void }) {
  const own = ownPath(action.url);
  if (own)
    return (
      <Link to={own} className={buttonClass("secondary", "sm")} onClick={onFollow}>
        {action.label}
      </Link>
    );
  if (!/^https?:/i.test(action.url)) return null;
  return (
    <a
      href={action.url}
      className={buttonClass("secondary", "sm")}
      target="_blank"
      rel="noreferrer"
      onClick={onFollow}
    >
      {action.label}
    </a>
  );
}
