// Applications that users can sign in to with their account on this deployment.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { AppWindow, Plus } from "lucide-react";
import type { ReactNode } from "react";
import { useNavigate } from "react-router";

import { ApiError, post, put } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { experiments, oauth2Apps, oauth2Settings } from "../../api/queries/deployment";
import type { OAuth2ProviderApp } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Button, ButtonLink } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { CodeBox } from "../../ui/text/CodeBox";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { DataTable, type Column } from "../../ui/lists/DataTable";
import { Empty } from "../../ui/Empty";
import { Failure, LoadFailure } from "../../ui/Failure";
import { Switch } from "../../ui/forms/Toggle";
import { TextField } from "../../ui/forms/Field";
import { IconField } from "../../ui/forms/IconField";
import { SkeletonRows } from "../../ui/Loading";
import { Narrow, PageHead, Stack, TextLink } from "../../ui/Page";
import { useChoice } from "../../ui/forms/choice";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { PermissionDenied } from "../../ui/PermissionDenied";

export const OAUTH2_HOME = "/deployment/oauth2-provider/apps";

/** The server answers these requests only with the experiment enabled. */
export function useOAuth2() {
  const query = useQuery(experiments);
  const enabledExperiments = query.data;
  return {
    query,
    on: enabledExperiments?.some((name) => name === "oauth2" || name === "*") ?? false,
    known: enabledExperiments !== undefined,
  };
}

export function TurnedOff() {
  return (
    <div className="rounded-xl border border-line bg-surface">
      <Empty
        icon={AppWindow}
        title="The OAuth2 provider is disabled"
        command="coder server --experiments=oauth2"
      >
        The OAuth2 provider is experimental. Start the server like this to let other applications
        request access to the accounts of users.
      </Empty>
    </div>
  );
}

const COLUMNS: Column<OAuth2ProviderApp>[] = [
  {
    id: "name",
    header: "Name",
    cell: (app) => (
      <div className="flex items-center gap-3">
        <Avatar name={app.name} src={app.icon} square />
        <TextLink to={`${OAUTH2_HOME}/${app.id}`} className="text-text [overflow-wrap:anywhere]">
          {app.name}
        </TextLink>
      </div>
    ),
  },
  {
    id: "callback",
    header: "Callback",
    extra: true,
    cell: (row) => <code className="text-sm [overflow-wrap:anywhere]">{row.callback_url}</code>,
  },
];

export function OAuth2AppsPage() {
  useTitle("OAuth2 applications");
  const may = usePermissions();
  const { on, known, query } = useOAuth2();
  const list = useQuery({ ...oauth2Apps, enabled: on });
  if (may.known && !may.editOAuth2Apps)
    return <PermissionDenied subject="the OAuth2 applications" />;
  return (
    <>
      <PageHead
        title="OAuth2 applications"
        description="Programs that can ask users for access to their accounts."
        actions={
          on ? (
            <ButtonLink variant="primary" to={`${OAUTH2_HOME}/add`} icon={<Plus />}>
              Add application
            </ButtonLink>
          ) : null
        }
      />
      {known && !on ? <TurnedOff /> : null}
      <LoadFailure query={query} title="Failed to load the experiments" />
      {on && list.isPending ? <SkeletonRows rows={2} /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.data !== undefined ? (
        <Stack>
          <DataTable
            label="OAuth2 applications"
            data={list.data ?? []}
            columns={COLUMNS}
            rowKey={(app) => app.id}
            empty={
              <Empty
                icon={AppWindow}
                title="No applications yet"
                actions={
                  <ButtonLink variant="primary" to={`${OAUTH2_HOME}/add`}>
                    Add application
                  </ButtonLink>
                }
              >
                Add an application to get its client ID and secret.
              </Empty>
            }
          />
          <Registration />
        </Stack>
      ) : null}
    </>
  );
}

function Registration() {
  const { value: allowed, choose } = useChoice(
    useQuery(oauth2Settings).data?.dynamic_client_registration_enabled,
    {
      send: (next) =>
        put("/api/v2/oauth2-provider/settings", { dynamic_client_registration_enabled: next }),
      seen: oauth2Settings.queryKey,
      failed: "Failed to update the setting",
    },
  );
  if (allowed === undefined) return null;
  return (
    <Section title="Registration">
      <Stack>
        <Switch
          label="Allow dynamic client registration"
          hint="Applications register themselves (RFC 7591). Users still have to authorize each one."
          checked={allowed}
          onChange={choose}
        />
        <CodeBox
          label="Server metadata URL"
          command={`${window.location.origin}/.well-known/oauth-authorization-server`}
        />
      </Stack>
    </Section>
  );
}

export function CreateOAuth2AppPage() {
  useTitle("New OAuth2 application");
  const may = usePermissions();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { on, known, query } = useOAuth2();
  if (may.known && !may.editOAuth2Apps)
    return <PermissionDenied subject="the form for new applications" />;
  return (
    <Narrow>
      <PageHead
        title="Add OAuth2 application"
        crumbs={[["OAuth2 applications", OAUTH2_HOME], ["Add"]]}
      />
      <LoadFailure query={query} title="Failed to load the experiments" />
      {known && !on ? (
        <TurnedOff />
      ) : (
        <AppForm
          start={{ name: "", callback_url: "", icon: "" }}
          submit="Create application"
          actions={<ButtonLink to={OAUTH2_HOME}>Cancel</ButtonLink>}
          send={async (values) => {
            const created = await post<OAuth2ProviderApp>("/api/v2/oauth2-provider/apps", values);
            toast.done("OAuth2 application created successfully.");
            await queries.invalidateQueries({ queryKey: ["oauth2-provider"] });
            await navigate(`${OAUTH2_HOME}/${created.id}`);
          }}
        />
      )}
    </Narrow>
  );
}

export interface AppValues {
  name: string;
  callback_url: string;
  icon: string;
}

const fields = ({ name, callback_url, icon }: AppValues) => ({ name, callback_url, icon });

/** `load` fetches an application that already exists. */
export function AppForm({
  start,
  load = null,
  send,
  submit,
  actions,
}: {
  start: AppValues;
  load?: (() => Promise<AppValues>) | null;
  send: (values: AppValues) => Promise<unknown>;
  submit: string;
  actions?: ReactNode;
}) {
  const form = useSettingsForm(load, fields, start, send);
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Section title="Application">
        <Stack>
          <FormProblems form={form} />
          <TextField
            label="Application name"
            autoFocus={load === null}
            required
            autoComplete="off"
            hint="Shown to users on the consent page."
            value={values.name}
            problem={problem("name")}
            onChange={(value) => set("name", value)}
          />
          <TextField
            label="Callback URL"
            required
            type="url"
            hint="Users are redirected here after sign-in."
            value={values.callback_url}
            problem={problem("callback_url")}
            onChange={(value) => set("callback_url", value)}
          />
          <IconField
            label="Application icon"
            value={values.icon}
            problem={problem("icon")}
            onChange={(value) => set("icon", value)}
          />
          <div className="flex justify-end gap-2">
            {actions}
            <Button
              type="submit"
              variant="primary"
              busy={form.busy}
              disabled={load !== null && !form.dirty}
            >
              {submit}
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}

export const isMissing = (error: Error | null): boolean =>
  error instanceof ApiError && error.status === 404;
