// The accounts elsewhere a template needs: each is linked in a window of its own, and this page sees it by itself.
import { useQuery } from "@tanstack/react-query";
import { Check, ExternalLink } from "lucide-react";

import { versionExternalAuth } from "../../api/queries/templates";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";

const POLL_MS = 2000;

export function useExternalAuth(version: string, enabled: boolean) {
  const answer = useQuery({
    ...versionExternalAuth(version),
    enabled,
    refetchInterval: (query) => (query.state.data?.some((item) => !item.authenticated) ? POLL_MS : false),
  });
  const needed = (answer.data ?? []).filter((item) => !item.authenticated && !item.optional);
  return { answer, missing: needed };
}

export function ExternalAuthStep({ version }: { version: string }) {
  const { answer } = useExternalAuth(version, true);
  if (answer.isLoadingError) return <Failure error={answer.error} retry={() => void answer.refetch()} />;
  if (!answer.data || answer.data.length === 0) return null;
  return (
    <Section title="External authentication" description="This template uses accounts you have elsewhere.">
      <ul className="flex flex-col gap-2">
        {answer.data.map((item) => (
          <li key={item.id} className="flex flex-wrap items-center gap-3 rounded-lg border border-line px-3 py-2">
            <Avatar name={item.display_name || item.id} src={item.display_icon} square />
            <span className="flex-1 font-medium">{item.display_name || item.id} {item.optional ? <Tag>Optional</Tag> : null}</span>
            {item.authenticated ? (
              <span className="inline-flex items-center gap-1.5 text-good"><Check className="size-4" aria-hidden="true" />Authenticated</span>
            ) : (
              <Button look="primary" onClick={() => window.open(`/external-auth/${encodeURIComponent(item.id)}`, "_blank", "width=900,height=600,noopener")}>Login with {item.display_name || item.id}<ExternalLink aria-hidden="true" /></Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
