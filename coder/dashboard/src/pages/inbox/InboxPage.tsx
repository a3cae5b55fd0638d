// All messages, or unread ones only.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Bell, CheckCheck, Settings } from "lucide-react";
import { useSearchParams } from "react-router";

import { inboxPages } from "../../api/queries/inbox";
import { Button, ButtonLink } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { SkeletonRows } from "../../ui/Loading";
import { Narrow, PageHead } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { useInboxActions } from "../../features/notification/inbox";
import { Message } from "../../features/notification/Message";

export function InboxPage() {
  useTitle("Inbox");
  const [params, setParams] = useSearchParams();
  const only = params.get("show") === "unread";
  const inbox = useInfiniteQuery(inboxPages(only ? "unread" : "all"));
  const actions = useInboxActions();
  const messages = inbox.data?.pages.flatMap((page) => page.notifications) ?? [];
  const count = inbox.data?.pages[0]?.unread_count;
  return (
    <Narrow>
      <PageHead
        title="Inbox"
        description={
          count === undefined ? "\u00a0" : count === 0 ? "No unread messages" : `${count} unread`
        }
        actions={
          <>
            <Button icon={<CheckCheck />} disabled={!count} onClick={actions.readAll}>
              Mark all as read
            </Button>
            <ButtonLink to="/settings/notifications" icon={<Settings />}>
              Settings
            </ButtonLink>
          </>
        }
      />
      <div className="mb-4">
        <Switch
          label="Unread only"
          checked={only}
          onChange={(on) => setParams(on ? { show: "unread" } : {}, { replace: true })}
        />
      </div>
      {inbox.isPending ? <SkeletonRows rows={4} /> : null}
      {inbox.isError ? <Failure error={inbox.error} retry={() => void inbox.refetch()} /> : null}
      {inbox.data ? (
        <Card>
          {messages.length === 0 ? (
            <Empty
              icon={Bell}
              title={only ? "No unread messages" : "No messages yet"}
              actions={<ButtonLink to="/settings/notifications">Choose notifications</ButtonLink>}
            >
              Failed builds, dormant workspaces and changes of your account appear here, and by mail
              if the deployment sends mail.
            </Empty>
          ) : null}
          <div className="divide-y divide-line">
            {messages.map((message) => (
              <Message
                key={message.id}
                message={message}
                onRead={(read) => actions.read(message, read)}
              />
            ))}
          </div>
        </Card>
      ) : null}
      {inbox.hasNextPage ? (
        <div className="mt-4 flex justify-center">
          <Button busy={inbox.isFetchingNextPage} onClick={() => void inbox.fetchNextPage()}>
            Load older messages
          </Button>
        </div>
      ) : null}
    </Narrow>
  );
}
