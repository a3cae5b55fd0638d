// Linking an external account (GitHub, GitLab, …): through the provider's page, or with a device
// code.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ExternalLink } from "lucide-react";
import { useEffect, useState } from "react";
import { useParams, useSearchParams } from "react-router";

import { ApiError, get, post, seg } from "../../api/client";
import type { ExternalAuth, ExternalAuthDevice } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Button, ButtonLink, buttonClass } from "../../ui/Button";
import { Failure } from "../../ui/Failure";
import { Loading } from "../../ui/Loading";
import { Notice } from "../../ui/Notice";
import { useTitle } from "../../ui/title";
import { NotFoundPage } from "../../ui/NotFoundPage";
import { DeviceCode } from "./DeviceCode";
import { SignInCard } from "./SignInCard";
import { counted } from "../../lib/words";

export function ExternalAuthPage() {
  const provider = useParams()["provider"] ?? "";
  const returned = useSearchParams()[0].has(BACK);
  const path = `/api/v2/external-auth/${seg(provider)}`;
  const auth = useQuery({
    queryKey: ["external-auth", provider],
    queryFn: () => get<ExternalAuth>(path),
    retry: false,
  });
  const name = auth.data?.display_name || provider;
  useTitle(`Authenticate with ${name}`);
  if (auth.isPending) return <Loading />;
  if (auth.isLoadingError) {
    if (auth.error instanceof ApiError && auth.error.status === 404) return <NotFoundPage />;
    return (
      <SignInCard title="External authentication">
        <Failure error={auth.error} retry={() => void auth.refetch()} />
      </SignInCard>
    );
  }
  if (auth.data.authenticated) return <Linked provider={provider} auth={auth.data} name={name} />;
  if (auth.data.device) return <ByDevice path={path} provider={provider} name={name} />;
  return returned ? (
    <NotLinked provider={provider} name={name} />
  ) : (
    <ToProvider provider={provider} />
  );
}

/**
 * Redirect to the provider's consent page; a user who returns without a link must not be redirected
 * again.
 */
const BACK = "redirected";

function authorizeUrl(provider: string): string {
  const page = `/external-auth/${seg(provider)}`;
  return `${page}/callback?redirect=${encodeURIComponent(`${page}?${BACK}=true`)}`;
}

function ToProvider({ provider }: { provider: string }) {
  useEffect(() => {
    window.location.replace(authorizeUrl(provider));
  }, [provider]);
  return <Loading label="Redirecting to the provider" />;
}

function NotLinked({ provider, name }: { provider: string; name: string }) {
  return (
    <SignInCard
      title={`Link ${name}`}
      description={
        `${name} did not confirm that this deployment may act for you, for example to clone ` +
        "your repositories."
      }
    >
      <a className={buttonClass("primary")} href={authorizeUrl(provider)}>
        Continue with {name}
      </a>
      <ButtonLink to="/workspaces">Not now</ButtonLink>
    </SignInCard>
  );
}

function ByDevice({ path, provider, name }: { path: string; provider: string; name: string }) {
  const queries = useQueryClient();
  const [failed, setFailed] = useState<Error | null>(null);
  const device = useQuery({
    queryKey: ["external-auth", provider, "device"],
    queryFn: () => get<ExternalAuthDevice>(`${path}/device`),
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    retry: false,
  });
  const exchange = async () => {
    await post(`${path}/device`, { device_code: device.data?.device_code });
    await queries.invalidateQueries({ queryKey: ["external-auth"] });
  };
  return (
    <SignInCard title={`Link ${name}`}>
      {device.isFetching ? <Loading /> : null}
      {device.isError ? <Failure error={device.error} retry={() => void device.refetch()} /> : null}
      {failed ? (
        <Failure
          error={failed}
          title={`${name} did not confirm the link`}
          retry={() => {
            setFailed(null);
            void device.refetch();
          }}
        />
      ) : null}
      {device.data && !failed ? (
        <DeviceCode device={device.data} exchange={exchange} onFailure={setFailed} />
      ) : null}
    </SignInCard>
  );
}

function Linked({ provider, auth, name }: { provider: string; auth: ExternalAuth; name: string }) {
  const retryUrl = auth.device ? null : authorizeUrl(provider);
  return (
    <SignInCard
      title={`You've authenticated with ${name}!`}
      description="You are now authenticated. Feel free to close this window!"
    >
      {auth.user ? (
        <div className="flex items-center gap-3 rounded-lg border border-line bg-inset px-3 py-2.5">
          <Avatar name={auth.user.login} src={auth.user.avatar_url} />
          <div className="min-w-0">
            <p className="truncate font-medium">{auth.user.name || auth.user.login}</p>
            <p className="truncate text-sm text-muted">{auth.user.login}</p>
          </div>
        </div>
      ) : null}
      {auth.installations.length > 0 ? (
        <p className="text-sm text-muted">
          {counted(auth.installations.length, "organization")} authorized:{" "}
          {auth.installations.map((item) => item.account.login).join(", ")}.
        </p>
      ) : null}
      {auth.app_installable && auth.installations.length === 0 ? (
        <Notice
          kind="warning"
          title={`The application is not installed at ${name}`}
          actions={
            /^https?:/i.test(auth.app_install_url) ? (
              <a
                className={buttonClass("secondary", "sm")}
                href={auth.app_install_url}
                target="_blank"
                rel="noreferrer"
              >
                Install
                <ExternalLink aria-hidden="true" />
              </a>
            ) : null
          }
        >
          Install it to give access to your repositories.
        </Notice>
      ) : null}
      <ButtonLink variant="primary" to="/workspaces">
        Go to workspaces
      </ButtonLink>
      {retryUrl ? (
        <a className={buttonClass("quiet")} href={retryUrl}>
          Link again
        </a>
      ) : (
        <Button variant="quiet" onClick={() => window.close()}>
          Close window
        </Button>
      )}
    </SignInCard>
  );
}
