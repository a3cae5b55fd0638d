// Of what people are told and by which way: a method for each event, a pause for all, a test for oneself.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Send } from "lucide-react";
import { useSearchParams } from "react-router";

import { post, put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { customTemplates, deploymentConfig, dispatchMethods, notificationSettings, systemTemplates } from "../../api/queries/deployment";
import type { NotificationTemplate } from "../../api/types";
import { Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { SelectField, Switch } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { PageHead, Stack } from "../../ui/Page";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { groupPath } from "./options";
import { OptionTable } from "./OptionsPage";
import { Refused } from "./Refused";

const METHODS: Readonly<Record<string, string>> = { smtp: "Email", webhook: "Webhook", inbox: "Inbox" };

export function NotificationsPage() {
  useTitle("Notifications Settings");
  const may = usePermissions();
  const [params, setParams] = useSearchParams();
  const tab = params.get("tab") === "settings" ? "settings" : "events";
  const test = useMutation({ mutationFn: () => post("/api/v2/notifications/test"), onSuccess: () => toast.done("Test notification sent."), onError: (error) => toast.failed("The test notification could not be sent", error) });
  if (may.known && !may.viewDeploymentConfig) return <Refused what="the notification settings" />;
  return (
    <>
      <PageHead title="Notifications" description="Everybody chooses in their own settings what they are told of; here is how it reaches them." actions={may.editDeploymentConfig ? <Button icon={<Send />} busy={test.isPending} onClick={() => test.mutate()}>Send me a test</Button> : null} />
      <Tabs label="Notifications" value={tab} onChange={(next) => setParams({ tab: next }, { replace: true })} items={[{ value: "events", text: "Events" }, { value: "settings", text: "Settings" }]}>
        <TabPanel value="events" className="pt-4"><Events editable={may.editDeploymentConfig} /></TabPanel>
        <TabPanel value="settings" className="pt-4"><Settings /></TabPanel>
      </Tabs>
    </>
  );
}

function Events({ editable }: { editable: boolean }) {
  const system = useQuery(systemTemplates);
  const custom = useQuery(customTemplates);
  const methods = useQuery(dispatchMethods).data;
  const paused = useQuery(notificationSettings).data?.notifier_paused;
  const queries = useQueryClient();
  const pause = (on: boolean) => put("/api/v2/notifications/settings", { notifier_paused: on }).then(
    () => queries.invalidateQueries({ queryKey: notificationSettings.queryKey }),
    (error: unknown) => toast.failed("The setting could not be changed", error),
  );
  if (system.isError) return <Failure error={system.error} retry={() => void system.refetch()} />;
  if (system.isPending) return <SkeletonRows rows={6} />;
  const groups = new Map<string, NotificationTemplate[]>();
  for (const template of [...system.data, ...(custom.data ?? [])]) groups.set(template.group, [...(groups.get(template.group) ?? []), template]);
  return (
    <Stack>
      {paused !== undefined ? (
        <Section title="All notifications">
          <Switch label="Send notifications" hint={paused ? "Nothing is sent now; what happens meanwhile waits." : "Turn it off while the mail server is being worked on: what happens meanwhile waits."} checked={!paused} disabled={!editable} onChange={(on) => void pause(!on)} />
        </Section>
      ) : null}
      {methods && !methods.available.includes("smtp") && !methods.available.includes("webhook") ? <Notice kind="warning" title="Neither mail nor a webhook is set up: people see notifications only in their inbox." /> : null}
      {[...groups].sort(([a], [b]) => a.localeCompare(b)).map(([group, templates]) => (
        <Section key={group} title={group || "Other"} padded={false}>
          <ul className="divide-y divide-line">{templates.map((template) => <Event key={template.id} template={template} usual={methods?.default ?? ""} available={methods?.available ?? []} editable={editable} />)}</ul>
        </Section>
      ))}
    </Stack>
  );
}

function Event({ template, usual, available, editable }: { template: NotificationTemplate; usual: string; available: readonly string[]; editable: boolean }) {
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (method: string) => put(`/api/v2/notifications/templates/${template.id}/method`, { method }),
    onSuccess: () => toast.done("Notification method updated."),
    onError: (error) => toast.failed("The method could not be changed", error),
    onSettled: () => queries.invalidateQueries({ queryKey: ["notifications", "templates"] }),
  });
  const words = (method: string) => METHODS[method] ?? method;
  return (
    <li className="flex flex-wrap items-center gap-3 px-5 py-2">
      <span className="min-w-48 flex-1">{template.name}{template.enabled_by_default ? null : <> <Tag title="People have to turn it on for themselves.">Off at first</Tag></>}</span>
      {editable ? (
        <div className="w-48"><SelectField hideLabel label={`Method of ${template.name}`} value={change.isPending ? change.variables : template.method} onChange={(method) => change.mutate(method)} options={[["", `Default (${words(usual)})`], ...available.map((method) => [method, words(method)] as const)]} /></div>
      ) : <span className="text-muted">{words(template.method || usual)}</span>}
    </li>
  );
}

function Settings() {
  const config = useQuery(deploymentConfig);
  if (config.isError) return <Failure error={config.error} retry={() => void config.refetch()} />;
  if (config.isPending) return <SkeletonRows rows={6} />;
  const options = config.data.options.filter((option) => /^(Notifications|Email)/.test(groupPath(option)) && !option.hidden);
  return <Section title="Settings of the server" description="Set on the command line, in the environment or in the configuration file; read-only here." padded={false}><OptionTable label="Notification settings" options={options} /></Section>;
}
