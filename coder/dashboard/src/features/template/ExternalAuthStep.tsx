// External accounts that a template requires: each is linked in a window of its own, and this page
// notices the link.
import { useQuery } from "@tanstack/react-query";
import { Check, ExternalLink } from "lucide-react";

import { versionExternalAuth } from "../../api/queries/templates";
import type { TemplateVersionExternalAuth } from "../../api/types";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";

const POLL_MS = 2000;

/**
 * `user` is an id, or "me": the links of other users are visible to those who may create workspaces
 * for them.
 */
export function useExternalAuth(version: string, user: string) {
  const answer = useQuery({
    ...versionExternalAuth(version, user),
    enabled: version !== "",
    refetchInterval: (query) =>
      query.state.data?.some((item) => !item.authenticated) ? POLL_MS : false,
  });
  const needed = (answer.data ?? []).filter((item) => !item.authenticated && !item.optional);
  return { answer, missing: needed };
}

const nameOf = (item: TemplateVersionExternalAuth) => item.display_name || item.id;

/**
 * The reason why creating is blocked. `name` is the other user's name, if the workspace is for
 * another user.
 */
export function missingLinks(
  missing: readonly TemplateVersionExternalAuth[],
  name: string | null,
): string {
  const names = missing.map(nameOf).join(", ");
  return name === null
    ? `Log in with ${names} first.`
    : `${name} has to log in with ${names} first.`;
}

interface ExternalAuthStepProps {
  version: string;
  user: string;
  /** The external account of another user: only they can log in. */
  name: string | null;
}

export function ExternalAuthStep({ version, user, name }: ExternalAuthStepProps) {
  const { answer } = useExternalAuth(version, user);
  if (answer.isLoadingError)
    return <Failure error={answer.error} retry={() => void answer.refetch()} />;
  if (!answer.data || answer.data.length === 0) return null;
  return (
    <Section
      title="External authentication"
      description={
        name === null
          ? "This template uses your accounts at other services."
          : `This template requires ${name}’s accounts at other services. Ask ${name} to link them under Account > External authentication.`
      }
    >
      <ul className="flex flex-col gap-2">
        {answer.data.map((item) => (
          <li
            key={item.id}
            className="flex flex-wrap items-center gap-3 rounded-lg border border-line px-3 py-2"
          >
            <Avatar name={nameOf(item)} src={item.display_icon} square />
            <span className="flex-1 font-medium">
              {nameOf(item)} {item.optional ? <Tag>Optional</Tag> : null}
            </span>
            {item.authenticated ? (
              <span className="inline-flex items-center gap-1.5 text-good">
                <Check className="size-4" aria-hidden="true" />
                Authenticated
              </span>
            ) : name !== null ? (
              <span className="text-muted">Not linked by {name}</span>
            ) : (
              <Button
                variant="primary"
                onClick={() =>
                  window.open(
                    `/external-auth/${encodeURIComponent(item.id)}`,
                    "_blank",
                    "width=900,height=600,noopener",
                  )
                }
              >
                Login with {nameOf(item)}
                <ExternalLink aria-hidden="true" />
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
