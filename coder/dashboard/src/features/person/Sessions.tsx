// The user's sessions, and ending one of them: ending the session of a lost laptop closes
// everything it had open.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { reasonOf, removeIfPresent, seg } from "../../api/client";
import { sessionsOf } from "../../api/queries/account";
import type { User, UserSession } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { toast } from "../../ui/toast";
import { LastUsed } from "../session/LastUsed";
import { programName } from "./user-agents";
import { plural } from "../../lib/words";

const LOGIN_TYPES: Partial<Record<UserSession["login_type"], string>> = {
  password: "with a password",
  oidc: "with single sign-on",
  github: "with GitHub",
};
const APPLICATIONS = "coder:application_connect";

/** The viewer's own sessions, or those of another user for an administrator who may end them. */
export function Sessions({ user }: { user?: User }) {
  const sessions = sessionsOf(user?.id ?? "me");
  const sessionList = useQuery(sessions);
  const queries = useQueryClient();
  const [ending, setEnding] = useState<readonly UserSession[]>([]);
  const others = (sessionList.data ?? []).filter((session) => !session.current);
  const end = async () => {
    const results = await Promise.allSettled(
      ending.map((session) =>
        removeIfPresent(`/api/v2/users/${seg(user?.id ?? "me")}/keys/${seg(session.id)}`),
      ),
    );
    await queries.invalidateQueries({ queryKey: sessions.queryKey }); // also after a failure: some have ended
    const left = ending.filter((_, index) => results[index]?.status === "rejected");
    const failure = results.find((result) => result.status === "rejected");
    if (failure) {
      setEnding(left);
      if (ending.length === 1) throw failure.reason;
      throw new Error(`Not ended: ${left.map(describe).join(", ")}. ${reasonOf(failure.reason)}`);
    }
    toast.done(plural(ending.length, "Session ended.", `${ending.length} sessions ended.`));
  };
  const single = ending.length === 1 ? ending[0] : undefined;
  return (
    <Section
      title={user ? `Sessions of ${user.username}` : "Your sessions"}
      description="Browsers and CLI clients. Tokens and devices have their own pages."
      padded={false}
      actions={
        others.length > 1 ? (
          <Button size="sm" onClick={() => setEnding(others)}>
            {user ? "End all sessions…" : "End other sessions…"}
          </Button>
        ) : null
      }
    >
      {sessionList.isPending ? <SkeletonRows rows={2} /> : null}
      {sessionList.isError ? (
        <div className="p-4">
          <Failure error={sessionList.error} retry={() => void sessionList.refetch()} />
        </div>
      ) : null}
      {sessionList.data?.length === 0 ? (
        <p className="px-5 py-3 text-muted">
          No active sessions. API tokens and devices are listed separately.
        </p>
      ) : null}
      <ul aria-label="Sessions" className="divide-y divide-line">
        {(sessionList.data ?? []).map((session) => (
          <li
            key={session.id}
            className="flex flex-wrap items-center gap-x-4 gap-y-2 px-5 py-3"
            data-testid={`session-${session.id}`}
          >
            <div className="min-w-0 flex-1">
              <p className="font-medium [overflow-wrap:anywhere]">
                {nameOf(session)} {session.current ? <Tag tone="good">This browser</Tag> : null}
                {session.scopes.includes(APPLICATIONS) ? <Tag>Applications only</Tag> : null}
              </p>
              <p
                className="text-sm text-muted [overflow-wrap:anywhere]"
                title={session.user_agent || undefined}
              >
                {programName(session.user_agent) ? `From ${placeOf(session)}. ` : ""}Signed in{" "}
                <Ago at={session.created_at} /> {LOGIN_TYPES[session.login_type] ?? ""},{" "}
                {session.current ? (
                  "in use now"
                ) : Date.parse(session.last_used) > 0 ? (
                  <>
                    last used <LastUsed at={session.last_used} />
                  </>
                ) : (
                  "never used"
                )}
                , expires <Ago at={session.expires_at} />
              </p>
            </div>
            {session.current ? null : (
              <Button
                size="sm"
                aria-label={`End the session ${describe(session)}`}
                onClick={() => setEnding([session])}
              >
                End session…
              </Button>
            )}
          </li>
        ))}
      </ul>
      <Confirm
        open={ending.length > 0}
        onClose={() => setEnding([])}
        title={single ? `End the session ${describe(single)}?` : `End ${ending.length} sessions?`}
        confirm={single ? "End session" : "End sessions"}
        onConfirm={end}
      >
        <p>
          {single ? "The device has" : "The devices have"} to sign in again. Open terminals and
          pages close; workspaces keep running.
        </p>
      </Confirm>
    </Section>
  );
}

/** The program and its operating system, which users recognize better than an IP address. */
const nameOf = (session: UserSession) => programName(session.user_agent) || placeOf(session);
const describe = (session: UserSession) =>
  `${programName(session.user_agent) ? `of ${programName(session.user_agent)} ` : ""}from ${placeOf(session)}`;
const placeOf = (session: UserSession) => session.ip_address || "an unknown address";
