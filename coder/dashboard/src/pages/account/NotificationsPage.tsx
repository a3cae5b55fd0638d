// Notification preferences: one switch for each kind of message.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Bell, Mail, Webhook } from "lucide-react";
import type { ReactNode } from "react";

import { put } from "../../api/client";
import { changeOptimistically, shownIn, setServerData } from "../../api/optimistic";
import {
  dispatchMethods,
  notificationPreferences,
  notificationTemplates,
} from "../../api/queries/account";
import { notificationDelivery } from "../../api/queries/deployment";
import type { NotificationPreference, NotificationTemplate } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Tag } from "../../ui/Badge";
import { ButtonLink } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { byGroup, isOn, withChoice } from "../../features/notification/notification-groups";

const METHODS: Record<string, readonly [ReactNode, string]> = {
  smtp: [<Mail key="i" />, "Mail"],
  webhook: [<Webhook key="i" />, "Webhook"],
  inbox: [<Bell key="i" />, "Inbox"],
};

export function NotificationsPage() {
  useTitle("Notifications Settings");
  const me = useMe();
  const preferences = useQuery(notificationPreferences(me.id));
  const system = useQuery(notificationTemplates("system"));
  const custom = useQuery(notificationTemplates("custom"));
  const defaultMethod = useQuery(dispatchMethods).data?.default;
  const delivery = useQuery(notificationDelivery).data?.methods;
  const failed = [preferences, system, custom].find((query) => query.isLoadingError);
  const templates = [...(system.data ?? []), ...(custom.data ?? [])];
  return (
    <>
      <PageHead
        title="Notifications"
        description="Choose what you are notified about. Messages also appear in your inbox."
        actions={
          <ButtonLink to="/inbox" icon={<Bell />}>
            Open inbox
          </ButtonLink>
        }
      />
      {delivery && !delivery.includes("smtp") && !delivery.includes("webhook") ? (
        <p className="mb-4 text-muted">
          {delivery.length > 0
            ? "No mail is sent: this deployment has no mail server."
            : "This deployment cannot send notifications: it has no mail server, and its inbox is turned off."}
        </p>
      ) : null}
      {failed?.error ? (
        <Failure
          error={failed.error}
          retry={() => {
            void preferences.refetch();
            void system.refetch();
            void custom.refetch();
          }}
        />
      ) : null}
      {!failed && (preferences.isPending || system.isPending || custom.isPending) ? (
        <SkeletonRows rows={6} />
      ) : null}
      {!failed && preferences.data && system.data && custom.data ? (
        templates.length === 0 ? (
          <Empty icon={Bell} title="No notifications">
            This deployment sends no notifications.
          </Empty>
        ) : (
          <Groups
            user={me.id}
            templates={templates}
            preferences={preferences.data}
            defaultMethod={defaultMethod}
            delivery={delivery}
          />
        )
      ) : null}
    </>
  );
}

interface GroupsProps {
  user: string;
  templates: readonly NotificationTemplate[];
  preferences: readonly NotificationPreference[];
  /** The delivery method of messages that do not specify one. */
  defaultMethod: string | undefined;
  /** The configured methods. */
  delivery: readonly string[] | undefined;
}

function Groups({
  user,
  templates,
  preferences,
  defaultMethod: usual,
  delivery: ways,
}: GroupsProps) {
  const queries = useQueryClient();
  const key = notificationPreferences(user).queryKey;
  const change = async (disabled: Record<string, boolean>) => {
    try {
      const now = await changeOptimistically(
        queries,
        [
          shownIn<readonly NotificationPreference[]>(key, (current) =>
            withChoice(current, disabled),
          ),
        ],
        () =>
          put<NotificationPreference[] | null>(`/api/v2/users/${user}/notifications/preferences`, {
            template_disabled_map: disabled,
          }),
      );
      setServerData(queries, key, now ?? []);
    } catch (error) {
      toast.failed("Failed to save notification preferences", error);
    }
  };
  return (
    <Stack>
      {byGroup(templates).map(([group, items]) => {
        const on = items.filter((item) => isOn(item, preferences)).length;
        return (
          <Section
            key={group}
            title={group}
            padded={false}
            actions={
              <Switch
                label={`All of ${group}`}
                hideLabel
                checked={on === items.length}
                onChange={(enabled) =>
                  void change(Object.fromEntries(items.map((item) => [item.id, !enabled])))
                }
              />
            }
          >
            <ul className="divide-y divide-line" aria-label={group}>
              {items.map((item) => (
                <li key={item.id} className="flex items-center gap-4 px-5 py-3">
                  <div className="min-w-0 flex-1">
                    <Switch
                      label={item.name}
                      checked={isOn(item, preferences)}
                      onChange={(enabled) => void change({ [item.id]: !enabled })}
                      testId={`notification-${item.name.toLowerCase().replaceAll(" ", "-")}`}
                    />
                  </div>
                  {usual && ways ? <Method name={item.method || usual} delivery={ways} /> : null}
                </li>
              ))}
            </ul>
          </Section>
        );
      })}
    </Stack>
  );
}

/**
 * Where a message of that method arrives: a method that is not configured falls back to the inbox.
 */
function Method({ name, delivery }: { name: string; delivery: readonly string[] }) {
  const channel = METHODS[delivery.includes(name) ? name : "inbox"];
  if (!delivery.includes(name) && !delivery.includes("inbox"))
    return <span className="text-sm text-muted">Not sent</span>;
  return channel ? (
    <span title={`Sent by ${channel[1].toLowerCase()}`}>
      <Tag icon={channel[0]}>{channel[1]}</Tag>
    </span>
  ) : null;
}
