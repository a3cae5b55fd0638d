// Linked external accounts (GitHub, GitLab, …): link, test, unlink.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { ExternalLink, Link2 } from "lucide-react";
import { useState } from "react";

import { get, remove, seg } from "../../api/client";
import { externalLinks } from "../../api/queries/account";
import type {
  DeleteExternalAuthByIDResponse,
  ExternalAuth,
  ExternalAuthLink,
  ExternalAuthLinkProvider,
} from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Avatar } from "../../ui/Avatar";
import { StatusText } from "../../ui/Badge";
import { Button, buttonClass } from "../../ui/Button";
import { Card } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";

const WAIT_MS = 2000; // while the user links in another tab

export function ExternalLinksPage() {
  useTitle("Settings");
  const [waiting, setWaiting] = useState(false);
  const links = useQuery({ ...externalLinks, refetchInterval: waiting ? WAIT_MS : false });
  const [unlinking, setUnlinking] = useState<ExternalAuthLinkProvider | null>(null);
  const queries = useQueryClient();
  const unlink = async () => {
    if (!unlinking) return;
    const answer = await remove<DeleteExternalAuthByIDResponse>(
      `/api/v2/external-auth/${seg(unlinking.id)}`,
    );
    await queries.invalidateQueries({ queryKey: externalLinks.queryKey });
    const name = unlinking.display_name || unlinking.id;
    if (answer.token_revocation_error)
      toast.failed(
        `${name} was unlinked, but its token was not revoked`,
        new Error(answer.token_revocation_error),
      );
    else toast.done(`${name} unlinked.`);
  };
  return (
    <>
      <PageHead
        title="External authentication"
        description="Workspaces use these accounts to clone and push without a separate password."
      />
      {links.isPending ? <SkeletonRows rows={2} /> : null}
      {links.isError ? <Failure error={links.error} retry={() => void links.refetch()} /> : null}
      {links.data?.providers.length === 0 ? (
        <Card>
          <Empty icon={Link2} title="No providers configured">
            An administrator can add GitHub, GitLab, Bitbucket and others to the deployment’s
            configuration (CODER_EXTERNAL_AUTH_0_…). Until then workspaces use your{" "}
            <a className="font-medium text-accent-text hover:underline" href="/settings/ssh-keys">
              SSH key
            </a>
            .
          </Empty>
        </Card>
      ) : null}
      <Stack>
        {links.data?.providers.map((provider) => (
          <Provider
            key={provider.id}
            provider={provider}
            link={links.data.links.find((link) => link.provider_id === provider.id)}
            onLink={() => setWaiting(true)}
            onUnlink={() => setUnlinking(provider)}
          />
        ))}
      </Stack>
      <Confirm
        open={unlinking !== null}
        onClose={() => setUnlinking(null)}
        title={`Unlink ${unlinking?.display_name || unlinking?.id || ""}?`}
        confirm="Unlink"
        onConfirm={unlink}
      >
        <p>
          Workspaces can no longer clone or push there in your name until you link it again.
          {unlinking?.supports_revocation
            ? " The token is revoked at the provider as well."
            : " The token stays valid at the provider until it expires; you can revoke it there."}
        </p>
      </Confirm>
    </>
  );
}

interface ProviderProps {
  provider: ExternalAuthLinkProvider;
  link: ExternalAuthLink | undefined;
  onLink: () => void;
  onUnlink: () => void;
}

function Provider({ provider, link, onLink, onUnlink }: ProviderProps) {
  const name = provider.display_name || provider.id;
  const [checking, setChecking] = useState(false);
  const check = async () => {
    setChecking(true);
    try {
      const answer = await get<ExternalAuth>(`/api/v2/external-auth/${seg(provider.id)}`);
      if (answer.authenticated)
        toast.done(`${name} accepts the link${answer.user ? ` as ${answer.user.login}` : ""}.`);
      else toast.failed(`${name} no longer accepts the link`, new Error("Link the account again."));
    } catch (error) {
      toast.failed(`Failed to test the link to ${name}`, error);
    } finally {
      setChecking(false);
    }
  };
  return (
    <Card className="flex flex-wrap items-center gap-x-4 gap-y-3 px-5 py-4">
      <Avatar name={name} src={provider.display_icon} square />
      <div className="min-w-0 flex-1 basis-48">
        <p className="font-medium">{name}</p>
        <p className="text-sm text-muted">
          {link ? (
            <>
              Linked <Ago at={link.created_at} />
              {provider.allow_refresh && !link.has_refresh_token
                ? ", expires without a refresh"
                : ""}
            </>
          ) : (
            provider.type
          )}
        </p>
        {link?.validate_error ? <p className="text-sm text-bad">{link.validate_error}</p> : null}
      </div>
      {link ? (
        <StatusText tone={link.authenticated ? "good" : "bad"}>
          {link.authenticated ? "Linked" : "Rejected"}
        </StatusText>
      ) : (
        <StatusText tone="idle">Not linked</StatusText>
      )}
      <div className="flex flex-wrap gap-2">
        {link && provider.allow_validate ? (
          <Button size="sm" busy={checking} onClick={() => void check()}>
            Test link
          </Button>
        ) : null}
        {!link || !link.authenticated ? (
          <a
            className={buttonClass("primary", "sm")}
            href={`/external-auth/${seg(provider.id)}`}
            target="_blank"
            rel="noreferrer"
            onClick={onLink}
          >
            {link ? "Link again" : `Link ${name}`}
            <ExternalLink aria-hidden="true" />
          </a>
        ) : null}
        {link ? (
          <Button size="sm" onClick={onUnlink}>
            Unlink…
          </Button>
        ) : null}
      </div>
    </Card>
  );
}
