// Delivery of notifications: a method per event, a pause for all, a test to oneself.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Send } from "lucide-react";
import { useSearchParams } from "react-router";

import { post, put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import {
  customTemplates,
  deploymentConfig,
  dispatchMethods,
  notificationDelivery,
  notificationSettings,
  systemTemplates,
} from "../../api/queries/deployment";
import type { NotificationTemplate } from "../../api/types";
import { Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { SelectField } from "../../ui/forms/Field";
import { Switch } from "../../ui/forms/Toggle";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useChoice } from "../../ui/forms/choice";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { byGroup } from "../../features/notification/notification-groups";
import { groupPath } from "./options";
import { OptionTable } from "./OptionsPage";
import { PermissionDenied } from "../../ui/PermissionDenied";

const METHODS: Readonly<Record<string, string>> = {
  smtp: "Email",
  webhook: "Webhook",
  inbox: "Inbox",
};

export function NotificationsPage() {
  useTitle("Notifications Settings");
  const may = usePermissions();
  const [params, setParams] = useSearchParams();
  const tab = params.get("tab") === "settings" ? "settings" : "events";
  const test = useMutation({
    mutationFn: () => post("/api/v2/notifications/test"),
    onSuccess: () => toast.done("Test notification sent."),
    onError: (error) => toast.failed("Failed to send the test notification", error),
  });
  if (may.known && !may.viewDeploymentConfig)
    return <PermissionDenied subject="the notification settings" />;
  return (
    <>
      <PageHead
        title="Notifications"
        description="How notifications are delivered. Users choose in their settings which ones they receive."
        actions={
          may.editDeploymentConfig ? (
            <Button icon={<Send />} busy={test.isPending} onClick={() => test.mutate()}>
              Send test notification
            </Button>
          ) : null
        }
      />
      <Tabs
        label="Notifications"
        value={tab}
        onChange={(next) => setParams({ tab: next }, { replace: true })}
        items={[
          { value: "events", text: "Events" },
          { value: "settings", text: "Settings" },
        ]}
      >
        <TabPanel value="events" className="pt-4">
          <Events editable={may.editDeploymentConfig} />
        </TabPanel>
        <TabPanel value="settings" className="pt-4">
          <Settings />
        </TabPanel>
      </Tabs>
    </>
  );
}

function Events({ editable }: { editable: boolean }) {
  const system = useQuery(systemTemplates);
  const custom = useQuery(customTemplates);
  const methods = useQuery(dispatchMethods).data;
  const delivery = useQuery(notificationDelivery).data?.methods;
  const { value: paused, choose: pause } = useChoice(
    useQuery(notificationSettings).data?.notifier_paused,
    {
      send: (on) => put("/api/v2/notifications/settings", { notifier_paused: on }),
      seen: notificationSettings.queryKey,
      failed: "Failed to update the setting",
    },
  );
  if (system.isLoadingError)
    return <Failure error={system.error} retry={() => void system.refetch()} />;
  if (custom.isLoadingError)
    return <Failure error={custom.error} retry={() => void custom.refetch()} />;
  if (system.isPending || custom.isPending) return <SkeletonRows rows={6} />;
  return (
    <Stack>
      {paused !== undefined ? (
        <Section title="All notifications">
          <Switch
            label="Send notifications"
            hint={
              paused
                ? "Notifications are paused and queued."
                : "Turn off during mail server maintenance: notifications are queued meanwhile."
            }
            checked={!paused}
            disabled={!editable}
            onChange={(on) => pause(!on)}
          />
        </Section>
      ) : null}
      {delivery && !delivery.includes("smtp") && !delivery.includes("webhook") ? (
        <Notice
          kind="warning"
          title="Neither mail nor a webhook is configured: users see notifications in their inbox only."
        />
      ) : null}
      {byGroup([...system.data, ...custom.data]).map(([group, templates]) => (
        <Section key={group} title={group} padded={false}>
          <ul className="divide-y divide-line">
            {templates.map((template) => (
              <Event
                key={template.id}
                template={template}
                defaultMethod={methods?.default ?? ""}
                available={methods?.available ?? []}
                delivery={delivery}
                editable={editable}
              />
            ))}
          </ul>
        </Section>
      ))}
    </Stack>
  );
}

function Event({
  template,
  defaultMethod,
  available,
  delivery,
  editable,
}: {
  template: NotificationTemplate;
  defaultMethod: string;
  available: readonly string[];
  delivery: readonly string[] | undefined;
  editable: boolean;
}) {
  const { value: chosen, choose } = useChoice(template.method, {
    send: (method) => put(`/api/v2/notifications/templates/${template.id}/method`, { method }),
    seen: ["notifications", "templates"],
    failed: "Failed to update the method",
    done: "Notification method updated.",
  });
  const words = (method: string) =>
    `${METHODS[method] ?? method}${delivery && method && !delivery.includes(method) ? ", not configured" : ""}`;
  return (
    <li className="flex flex-wrap items-center gap-3 px-5 py-2">
      <span className="min-w-48 flex-1">
        {template.name}
        {template.enabled_by_default ? null : (
          <>
            {" "}
            <Tag title="Users have to turn it on in their settings.">Off by default</Tag>
          </>
        )}
      </span>
      {editable ? (
        <div className="w-60 max-sm:w-full">
          <SelectField
            hideLabel
            label={`Method of ${template.name}`}
            value={chosen}
            onChange={choose}
            options={[
              ["", `Default (${words(defaultMethod)})`],
              ...available.map((method) => [method, words(method)] as const),
            ]}
          />
        </div>
      ) : (
        <span className="text-muted">{words(template.method || defaultMethod)}</span>
      )}
    </li>
  );
}

function Settings() {
  const config = useQuery(deploymentConfig);
  if (config.isLoadingError)
    return <Failure error={config.error} retry={() => void config.refetch()} />;
  if (config.isPending) return <SkeletonRows rows={6} />;
  const options = config.data.options.filter(
    (option) => /^(Notifications|Email)/.test(groupPath(option)) && !option.hidden,
  );
  return (
    <Section
      title="Server settings"
      description="Set on the command line, in the environment or in the configuration file; read-only here."
      padded={false}
    >
      <OptionTable label="Notification settings" options={options} />
    </Section>
  );
}
