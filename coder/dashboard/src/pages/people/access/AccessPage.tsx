// The access review of one user: roles and groups with their origin, shares, and everything that acts
// for the user. Each part obeys its own rule: what the viewer may not see says so.
import { useQuery, useQueryClient, type UseQueryResult } from "@tanstack/react-query";
import { ShieldOff } from "lucide-react";
import { useState } from "react";
import { useParams } from "react-router";

import { seg } from "../../../api/client";
import { authorizationCheck, useCheckAnswer, usePermissions } from "../../../api/permissions";
import {
  authorizedApps,
  myGroups,
  sessionsOf,
  tokensOf,
  wireguardClients,
} from "../../../api/queries/account";
import { memberOf, organizationsOf, userByName } from "../../../api/queries/people";
import { experiments } from "../../../api/queries/session";
import { workspaces } from "../../../api/queries/workspaces";
import type { Organization, User } from "../../../api/types";
import { useMe } from "../../../features/session/useMe";
import { Ago } from "../../../ui/Ago";
import { Avatar } from "../../../ui/Avatar";
import { Button } from "../../../ui/Button";
import { Facts, Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { Loading } from "../../../ui/Loading";
import { PageHead, Stack } from "../../../ui/Page";
import { PermissionDenied } from "../../../ui/PermissionDenied";
import { useTitle } from "../../../ui/title";
import { LOGIN_TYPES } from "../user-columns";
import { groupOrigin, permissionsOf, roleOrigin, sessionName, type Listed } from "./access";
import { Part, Rows, sharedRows, Unlisted, used } from "./parts";
import { RevokeAll } from "./RevokeAll";

const LIST = "/deployment/users";
const SHARES = 100;
const NO_PERMISSION = "you need permission to view them.";
const NO_APPLICATIONS = "this deployment does not let other applications sign in with it.";

export function AccessPage() {
  const { user: name = "" } = useParams();
  const may = usePermissions();
  const user = useQuery({ ...userByName(name), enabled: may.viewUsers });
  useTitle(`Access of ${user.data?.username ?? name}`, "Users");
  if (may.known && !may.viewUsers) return <PermissionDenied subject="the access of other users" />;
  if (user.isPending) return <Loading />;
  if (user.isLoadingError)
    return (
      <>
        <PageHead title="Access review" crumbs={[["Users", LIST], [name]]} />
        <Failure error={user.error} retry={() => void user.refetch()} />
      </>
    );
  return <Review user={user.data} />;
}

function Review({ user }: { user: User }) {
  const may = usePermissions();
  const me = useMe();
  const [revoking, setRevoking] = useState(false);
  const organizations = useQuery(organizationsOf(user.id));
  const groups = useQuery(myGroups(user.id));
  const receivedFilter = `shared_with_user:${user.id}`;
  const givenFilter = `owner:${user.username} shared:true`;
  const received = useQuery(workspaces(receivedFilter, 1, SHARES));
  const given = useQuery(workspaces(givenFilter, 1, SHARES));
  // Asked first: the server lists no tokens and no sessions to a viewer who may see none of them.
  const checks = useCheckAnswer(["access", user.id], {
    keys: authorizationCheck("api_key", "read", { owner_id: user.id }),
    consents: authorizationCheck("oauth2_app_code_token", "read", { owner_id: user.id }),
  });
  const rights = checks.data;
  const tokens = useQuery({ ...tokensOf(user.id), enabled: rights?.keys === true });
  const sessions = useQuery({ ...sessionsOf(user.id), enabled: rights?.keys === true });
  const devices = useQuery({
    ...wireguardClients(user.id),
    enabled: rights?.keys === true,
    refetchInterval: false, // a refused list would be requested without end
  });
  const experimentList = useQuery(experiments);
  const enabledExperiments = experimentList.data;
  const noApplications =
    enabledExperiments !== undefined &&
    !["oauth2", "*"].some((name) => enabledExperiments.includes(name));
  const apps = useQuery({
    ...authorizedApps(user.id),
    enabled: rights?.consents === true && enabledExperiments !== undefined && !noApplications,
  });
  const unchecked = checks.isLoadingError ? checks.error.message : undefined;
  const hiddenKeys = rights?.keys === false ? NO_PERMISSION : unchecked;
  const hiddenConsents =
    rights?.consents === false
      ? NO_PERMISSION
      : noApplications
        ? NO_APPLICATIONS
        : (unchecked ?? (experimentList.isLoadingError ? experimentList.error.message : undefined));
  const known =
    hiddenKeys !== undefined || [tokens, sessions, devices].every((part) => part.isFetched);
  const queries = useQueryClient();
  const listed = <T,>(part: UseQueryResult<T[]>, load: () => Promise<T[]>): Listed<T> => ({
    items: part.data,
    problem: hiddenKeys ?? part.error?.message ?? "",
    load: rights?.keys === true ? load : null,
  });
  return (
    <>
      <PageHead
        icon={<Avatar name={user.username} src={user.avatar_url} size="lg" />}
        title={`Access of ${user.username}`}
        crumbs={[["Users", LIST], [user.username], ["Access"]]}
        description="Roles, groups, shares, tokens and sessions of this user, as far as you may see them."
        actions={
          may.updateUsers && may.endAnySession && user.id !== me.id ? (
            <Button
              variant="danger"
              icon={<ShieldOff />}
              disabled={!known}
              onClick={() => setRevoking(true)}
            >
              Revoke everything…
            </Button>
          ) : null
        }
      />
      <Stack>
        <Section title="Account">
          <Facts
            items={[
              ["Status", user.status[0]?.toUpperCase() + user.status.slice(1)],
              ["Sign-in method", LOGIN_TYPES[user.login_type] ?? user.login_type],
              ["Last seen", <Ago key="seen" at={user.last_seen_at} />],
              ["Email", user.email],
            ]}
          />
        </Section>
        <Section title="Site roles" padded={false}>
          <Rows
            empty="No site role."
            rows={user.roles.map((role) => ({
              key: role.name,
              name: role.display_name || role.name,
              note: roleOrigin(user),
            }))}
          />
        </Section>
        <Part title="Organizations" part={organizations} empty="No organization that you may see.">
          {(list) =>
            list.map((organization) => ({
              key: organization.id,
              name: organization.display_name || organization.name,
              to: `/organizations/${organization.name}`,
              note: <MemberRoles organization={organization} user={user} />,
            }))
          }
        </Part>
        <Part title="Groups" part={groups} empty="No group that you may see.">
          {(list) =>
            list.map((group) => ({
              key: group.id,
              name: `${group.display_name || group.name} (${group.organization_display_name || group.organization_name})`,
              to: `/organizations/${group.organization_name}/groups/${seg(group.name)}`,
              note: groupOrigin(group),
            }))
          }
        </Part>
        <Part
          title="Workspaces shared with this user"
          part={received}
          empty="None that you may see."
          rest={(page) => <Unlisted page={page} filter={receivedFilter} />}
        >
          {sharedRows}
        </Part>
        <Part
          title="Own workspaces shared with others"
          part={given}
          empty="None that you may see."
          rest={(page) => <Unlisted page={page} filter={givenFilter} />}
        >
          {sharedRows}
        </Part>
        <Part title="Tokens" part={tokens} hidden={hiddenKeys} empty="No token.">
          {(list) =>
            list.map((token) => ({
              key: token.id,
              name: token.token_name,
              note: (
                <>
                  {permissionsOf(token)}&nbsp;· {used(token.last_used)}&nbsp;· expires{" "}
                  <Ago at={token.expires_at} />
                </>
              ),
            }))
          }
        </Part>
        <Part title="Sessions" part={sessions} hidden={hiddenKeys} empty="No session.">
          {(list) =>
            list.map((session) => ({
              key: session.id,
              name: sessionName(session),
              note: (
                <>
                  {used(session.last_used)}&nbsp;· expires <Ago at={session.expires_at} />
                </>
              ),
            }))
          }
        </Part>
        <Part title="Devices" part={devices} hidden={hiddenKeys} empty="No device.">
          {(list) =>
            list.map((device) => ({
              key: device.id,
              name: device.name,
              note: (
                <>
                  {device.workspace_ids === null ? "Every workspace" : "Some workspaces"} ·{" "}
                  {used(device.last_handshake_at)}
                  {device.expires_at ? (
                    <>
                      {" "}
                      · expires <Ago at={device.expires_at} />
                    </>
                  ) : null}
                </>
              ),
            }))
          }
        </Part>
        <Part title="OAuth2 consents" part={apps} hidden={hiddenConsents} empty="No application.">
          {(list) =>
            list.map((app) => ({
              key: app.id,
              name: app.name,
              note: (
                <>
                  {app.callback_url}&nbsp;· {used(app.last_used ?? null)}
                </>
              ),
            }))
          }
        </Part>
      </Stack>
      <RevokeAll
        open={revoking}
        onClose={() => setRevoking(false)}
        user={user}
        credentials={{
          tokens: listed(tokens, () => queries.fetchQuery({ ...tokensOf(user.id), staleTime: 0 })),
          sessions: listed(sessions, () =>
            queries.fetchQuery({ ...sessionsOf(user.id), staleTime: 0 }),
          ),
          devices: listed(devices, () =>
            queries.fetchQuery({ ...wireguardClients(user.id), staleTime: 0 }),
          ),
        }}
      />
    </>
  );
}

function MemberRoles({ organization, user }: { organization: Organization; user: User }) {
  const member = useQuery(memberOf(organization.id, user.id));
  if (member.isLoadingError) return "Roles not shown";
  if (!member.data) return "…";
  const names = member.data.roles.map((role) => role.display_name || role.name);
  return names.length === 0 ? "Member" : `${names.join(", ")} · ${roleOrigin(user)}`;
}
