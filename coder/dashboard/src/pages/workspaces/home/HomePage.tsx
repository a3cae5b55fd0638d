// Where the user left off: the last workspaces, what failed, and what waits for the user.
import { useQuery } from "@tanstack/react-query";
import { ArrowRight, Bell, CircleAlert, CloudDownload, KeyRound, MoonStar } from "lucide-react";
import { useState, type ReactNode } from "react";

import { tokens } from "../../../api/queries/account";
import { unread } from "../../../api/queries/inbox";
import { workspaces } from "../../../api/queries/workspaces";
import type { Workspace } from "../../../api/types";
import { FirstErrors } from "../../../features/build/FirstErrors";
import { useOffers } from "../../../features/workspace/offers";
import { counted } from "../../../lib/words";
import { Ago } from "../../../ui/Ago";
import { Section } from "../../../ui/Card";
import { cx } from "../../../ui/cx";
import { Failure, LoadFailure } from "../../../ui/Failure";
import { Skeleton } from "../../../ui/Loading";
import { PageHead, Stack, TextLink } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { NewWorkspace } from "../NewWorkspace";
import { workspacePath } from "../paths";
import { RightsOfList } from "../rights";
import { FirstWorkspace } from "./FirstWorkspace";
import { expiringTokens, problemsSince, recentWorkspaces, yesterday } from "./home";
import { CARD_HEIGHT, WorkspaceCard } from "./WorkspaceCard";

const NONE: readonly Workspace[] = [];
const LOADED = 100; // the newest of a user's workspaces; the list has the others

export function HomePage() {
  useTitle("Home");
  const list = useQuery(workspaces("owner:me", 1, LOADED));
  const offered = useOffers(list.data?.workspaces ?? NONE);
  const mine = list.data ? offered : undefined;
  const recent = mine && recentWorkspaces(mine);
  return (
    <>
      <PageHead
        title="Home"
        description="Your last workspaces and what needs your attention."
        actions={mine && mine.length > 0 ? <NewWorkspace /> : null}
      />
      {list.isLoadingError ? (
        <Failure error={list.error} retry={() => void list.refetch()} />
      ) : mine?.length === 0 ? (
        <FirstWorkspace />
      ) : (
        <Stack>
          <RightsOfList list={recent ?? []}>
            <section aria-label="Last workspaces">
              <div className="grid grid-cols-3 gap-4 max-lg:grid-cols-2 max-sm:grid-cols-1">
                {recent
                  ? recent.map((workspace) => (
                      <WorkspaceCard key={workspace.id} workspace={workspace} />
                    ))
                  : [1, 2, 3].map((card) => <Skeleton key={card} className={CARD_HEIGHT} />)}
              </div>
              <p className="mt-2 min-h-5 text-sm">
                {mine ? (
                  <TextLink to="/workspaces">
                    All {counted(list.data?.count ?? mine.length, "workspace")}
                  </TextLink>
                ) : null}
              </p>
            </section>
          </RightsOfList>
          <div className="grid grid-cols-2 items-start gap-4 max-lg:grid-cols-1">
            <Failures mine={mine} />
            <Waiting mine={mine} />
          </div>
        </Stack>
      )}
    </>
  );
}

/** Failed builds whose log is read for its first error: each is a connection. */
const EXPLAINED = 3;

function Failures({ mine }: { mine: readonly Workspace[] | undefined }) {
  const [since] = useState(() => yesterday(Date.now()));
  const problems = mine ? problemsSince(mine, since) : null;
  return (
    <Section title="Failed since yesterday" padded={false}>
      <Items
        items={problems?.map(({ workspace, text, at, build }, index) => ({
          key: workspace.id + text,
          icon: <CircleAlert aria-hidden="true" />,
          failed: true,
          to: `${workspacePath(workspace)}`,
          name: workspace.name,
          text: (
            <>
              <Ago at={at} />: {text}
              {build && index < EXPLAINED ? <FirstErrors build={build} most={1} /> : null}
            </>
          ),
        }))}
        empty="Nothing failed."
      />
    </Section>
  );
}

function Waiting({ mine }: { mine: readonly Workspace[] | undefined }) {
  const [now] = useState(() => Date.now());
  const tokenList = useQuery(tokens(false, false));
  const inbox = useQuery(unread);
  const ownTokens = tokenList.data;
  const messages = inbox.data?.unread_count;
  const items =
    mine && ownTokens && messages !== undefined
      ? [
          ...mine
            .filter((workspace) => workspace.outdated)
            .map((workspace) => ({
              key: `update ${workspace.id}`,
              icon: <CloudDownload aria-hidden="true" />,
              to: workspacePath(workspace),
              name: workspace.name,
              text: "An update of its template is available.",
            })),
          ...mine
            .filter((workspace) => workspace.dormant_at)
            .map((workspace) => ({
              key: `dormant ${workspace.id}`,
              icon: <MoonStar aria-hidden="true" />,
              to: workspacePath(workspace),
              name: workspace.name,
              text: workspace.deleting_at ? (
                <>
                  Dormant; it will be deleted <Ago at={workspace.deleting_at} />.
                </>
              ) : (
                "Dormant: activate it to use it again."
              ),
            })),
          ...expiringTokens(ownTokens, now).map((token) => ({
            key: `token ${token.id}`,
            icon: <KeyRound aria-hidden="true" />,
            to: "/settings/tokens",
            name: token.token_name,
            text: (
              <>
                This token expires <Ago at={token.expires_at} />.
              </>
            ),
          })),
          ...(messages > 0
            ? [
                {
                  key: "inbox",
                  icon: <Bell aria-hidden="true" />,
                  to: "/inbox",
                  name: "Inbox",
                  text: counted(messages, "unread message"),
                },
              ]
            : []),
        ]
      : undefined;
  const failed = [tokenList, inbox].find((query) => query.isLoadingError);
  return (
    <Section title="Waiting for you" padded={false}>
      {failed ? (
        <div className="p-4">
          <LoadFailure query={failed} title="It is unknown what waits for you" />
        </div>
      ) : (
        <Items items={items} empty="Nothing waits for you." />
      )}
    </Section>
  );
}

interface Item {
  key: string;
  icon: ReactNode;
  failed?: boolean;
  to: string;
  name: string;
  text: ReactNode;
}

const LISTED = 8;

function Items({ items, empty }: { items: readonly Item[] | undefined; empty: string }) {
  if (!items)
    return (
      <div className="p-4">
        <Skeleton className="h-6" />
      </div>
    );
  if (items.length === 0) return <p className="px-5 py-4 text-muted">{empty}</p>;
  return (
    <>
      <ul className="divide-y divide-line">
        {items.slice(0, LISTED).map((item) => (
          <li key={item.key} className="flex items-start gap-3 px-5 py-2.5">
            <span className={cx("mt-0.5 [&_svg]:size-4", item.failed ? "text-bad" : "text-muted")}>
              {item.icon}
            </span>
            <p className="min-w-0 flex-1 [overflow-wrap:anywhere]">
              <TextLink to={item.to} className="text-text">
                {item.name}
              </TextLink>
              <span className="block text-sm text-muted">{item.text}</span>
            </p>
            <ArrowRight className="mt-1 size-4 text-faint" aria-hidden="true" />
          </li>
        ))}
      </ul>
      {items.length > LISTED ? (
        <p className="border-t border-line px-5 py-2 text-sm text-muted">
          {items.length - LISTED} more
        </p>
      ) : null}
    </>
  );
}
