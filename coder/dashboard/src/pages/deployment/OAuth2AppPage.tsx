// An OAuth2 application: its endpoints, its secrets, its deletion.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useNavigate, useParams } from "react-router";

import { get, post, put, remove } from "../../api/client";
import { usePermissions } from "../../api/permissions";
import { oauth2App, oauth2Secrets } from "../../api/queries/deployment";
import type {
  OAuth2ProviderApp,
  OAuth2ProviderAppSecret,
  OAuth2ProviderAppSecretFull,
} from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { Button, IconButton } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { CodeBox } from "../../ui/text/CodeBox";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { AppForm, isMissing, OAUTH2_HOME, TurnedOff, useOAuth2 } from "./OAuth2AppsPage";
import { PermissionDenied } from "../../ui/PermissionDenied";

export function OAuth2AppPage() {
  const { app: id = "" } = useParams();
  const may = usePermissions();
  const { on, known } = useOAuth2();
  const app = useQuery({ ...oauth2App(id), enabled: on });
  useTitle(app.data?.name ?? "OAuth2 application");
  if (may.known && !may.editOAuth2Apps)
    return <PermissionDenied subject="the settings of this application" />;
  if (known && !on)
    return (
      <>
        <PageHead
          title="OAuth2 application"
          crumbs={[["OAuth2 applications", OAUTH2_HOME], [id]]}
        />
        <TurnedOff />
      </>
    );
  if (app.isPending) return <SkeletonRows rows={3} />;
  if (isMissing(app.error)) return <NotFoundPage />;
  if (app.isLoadingError) return <Failure error={app.error} retry={() => void app.refetch()} />;
  return <Loaded key={app.data.id} app={app.data} />;
}

function Loaded({ app }: { app: OAuth2ProviderApp }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [deleting, setDeleting] = useState(false);
  const { name, callback_url, icon, endpoints } = app;
  return (
    <>
      <PageHead
        icon={<Avatar name={name} src={icon} size="lg" square />}
        title={name}
        crumbs={[["OAuth2 applications", OAUTH2_HOME], [name]]}
        actions={
          <Button icon={<Trash2 />} onClick={() => setDeleting(true)}>
            Delete
          </Button>
        }
      />
      <Stack>
        <Section title="Client configuration">
          <dl className="flex flex-col gap-3">
            {(
              [
                ["Client ID", app.id],
                ["Authorization URL", endpoints.authorization],
                ["Token URL", endpoints.token],
              ] as const
            ).map(([text, value]) => (
              <div key={text}>
                <dt className="mb-1 text-sm text-muted">{text}</dt>
                <dd>
                  <CodeBox label={text} command={value} />
                </dd>
              </div>
            ))}
          </dl>
        </Section>
        <Secrets app={app} />
        <AppForm
          start={{ name, callback_url, icon }}
          load={() => get<OAuth2ProviderApp>(`/api/v2/oauth2-provider/apps/${app.id}`)}
          submit="Update application"
          send={async (values) => {
            await put(`/api/v2/oauth2-provider/apps/${app.id}`, values);
            toast.done("OAuth2 application updated successfully.");
            await queries.invalidateQueries({ queryKey: ["oauth2-provider"] });
          }}
        />
      </Stack>
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${name}?`}
        confirm="Delete"
        typed={name}
        typedLabel="Name of the application to delete"
        onConfirm={async () => {
          await remove(`/api/v2/oauth2-provider/apps/${app.id}`);
          toast.done("OAuth2 application deleted successfully.");
          await navigate(OAUTH2_HOME);
          await queries.invalidateQueries({ queryKey: ["oauth2-provider"] });
        }}
      >
        <p>Users can no longer sign in with it: its secrets and tokens are revoked at once.</p>
      </Confirm>
    </>
  );
}

function Secrets({ app }: { app: OAuth2ProviderApp }) {
  const list = useQuery(oauth2Secrets(app.id));
  const queries = useQueryClient();
  const [created, setCreated] = useState("");
  const [deleting, setDeleting] = useState<OAuth2ProviderAppSecret | null>(null);
  const [busy, setBusy] = useState(false);
  const changed = () =>
    queries.invalidateQueries({ queryKey: ["oauth2-provider", "apps", app.id, "secrets"] });
  const make = async () => {
    setBusy(true);
    try {
      setCreated(
        (await post<OAuth2ProviderAppSecretFull>(`/api/v2/oauth2-provider/apps/${app.id}/secrets`))
          .client_secret_full,
      );
      await changed();
    } catch (error) {
      toast.failed("Failed to generate the secret", error);
    } finally {
      setBusy(false);
    }
  };
  const secrets = list.data ?? [];
  return (
    <Section
      title="Client secrets"
      padded={false}
      actions={
        <Button icon={<Plus />} busy={busy} onClick={() => void make()}>
          Generate secret
        </Button>
      }
    >
      {list.isError ? (
        <div className="p-4">
          <Failure error={list.error} retry={() => void list.refetch()} />
        </div>
      ) : null}
      {list.data !== undefined && secrets.length === 0 ? (
        <Empty level={3} icon={KeyRound} title="No secrets yet">
          The application needs a secret to get tokens.
        </Empty>
      ) : null}
      <ul aria-label="Client secrets" className="divide-y divide-line">
        {secrets.map((secret) => (
          <li key={secret.id} className="flex items-center gap-3 px-5 py-2.5">
            <code className="text-sm">*****{secret.client_secret_truncated}</code>
            <span className="flex-1 text-sm text-muted">
              used <Ago at={secret.last_used_at} />
            </span>
            <IconButton
              size="sm"
              label={`Delete secret ending in ${secret.client_secret_truncated}`}
              onClick={() => setDeleting(secret)}
            >
              <Trash2 />
            </IconButton>
          </li>
        ))}
      </ul>
      <Dialog
        held
        open={created !== ""}
        onClose={() => setCreated("")}
        title="Client secret generated"
        description="Copy the secret now. It is not shown again."
        actions={
          <Button variant="primary" onClick={() => setCreated("")}>
            Done
          </Button>
        }
      >
        <CodeBox label="Client secret" command={created} secret />
      </Dialog>
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title="Delete this secret?"
        confirm="Delete"
        onConfirm={async () => {
          await remove(`/api/v2/oauth2-provider/apps/${app.id}/secrets/${deleting?.id}`);
          await changed();
        }}
      >
        <p>An application that still uses it can no longer get tokens.</p>
      </Confirm>
    </Section>
  );
}
