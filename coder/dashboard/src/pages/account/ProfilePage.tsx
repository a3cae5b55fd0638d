// The user's profile: names, and the groups they are in.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Users } from "lucide-react";

import { get, put } from "../../api/client";
import { setServerData } from "../../api/optimistic";
import { useChecks, authorizationCheck } from "../../api/permissions";
import { myGroups } from "../../api/queries/account";
import { me as meQuery, organizations } from "../../api/queries/session";
import type { User } from "../../api/types";
import { useMe } from "../../features/session/useMe";
import { Avatar } from "../../ui/Avatar";
import { Tag } from "../../ui/Badge";
import { Button } from "../../ui/Button";
import { Facts, Section } from "../../ui/Card";
import { FormProblems, useSettingsForm } from "../../ui/forms/conflict";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { TextField } from "../../ui/forms/Field";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack } from "../../ui/Page";
import { dateTime } from "../../lib/time";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { countedAtStart } from "../../lib/words";

const fields = (user: User) => ({
  username: user.username,
  name: user.name ?? "",
  avatar_url: user.avatar_url ?? "",
});

export function ProfilePage() {
  const me = useMe();
  useTitle("Settings");
  return (
    <>
      <PageHead title="Account" description="How others see you on this deployment." />
      <Stack>
        <Profile me={me} />
        <About me={me} />
        <Groups me={me} />
      </Stack>
    </>
  );
}

function Profile({ me }: { me: User }) {
  const queries = useQueryClient();
  const may = useChecks(["rename", me.id], {
    rename: authorizationCheck("user", "update", { resource_id: me.id }),
  });
  const form = useSettingsForm(
    () => get<User>("/api/v2/users/me"),
    fields,
    fields(me),
    async (values) => {
      const saved = await put<User>("/api/v2/users/me/profile", values);
      setServerData(queries, meQuery.queryKey, saved);
      toast.done("Account updated successfully.");
    },
  );
  const { values, set, problem } = form;
  return (
    <form onSubmit={form.submit}>
      <Section title="Profile" description="How you appear to others.">
        <Stack>
          <FormProblems form={form} />
          <div className="flex items-center gap-4">
            <Avatar name={values.username} src={values.avatar_url} size="xl" />
            <p className="text-sm text-muted">Without a picture, your initial is shown.</p>
          </div>
          <TextField
            label="Email"
            type="email"
            value={me.email}
            onChange={() => undefined}
            readOnly
            hint="Only an administrator or your sign-in provider can change it."
          />
          <TextField
            label="Username"
            required
            autoComplete="username"
            value={values.username}
            readOnly={may.rename === false}
            problem={problem("username")}
            onChange={(value) => set("username", value)}
            hint={
              may.rename === false
                ? "Ask an administrator to change it: the URLs of your workspaces contain it."
                : "The URLs of your workspaces contain it; old links stop working."
            }
          />
          <TextField
            label="Name"
            autoComplete="name"
            value={values.name}
            problem={problem("name")}
            onChange={(value) => set("name", value)}
            hint="Your full name (optional)."
          />
          <TextField
            label="Picture"
            type="url"
            placeholder="https://…"
            value={values.avatar_url}
            problem={problem("avatar_url")}
            onChange={(value) => set("avatar_url", value)}
            hint="URL of an image (optional)."
          />
          <div className="flex justify-end">
            <Button type="submit" variant="primary" busy={form.busy} disabled={!form.dirty}>
              Update account
            </Button>
          </div>
        </Stack>
      </Section>
    </form>
  );
}

function About({ me }: { me: User }) {
  const all = useQuery(organizations).data;
  const own = all?.filter((organization) => me.organization_ids.includes(organization.id));
  return (
    <Section title="Account details">
      <Facts
        items={[
          ["Member since", dateTime(me.created_at)],
          [
            "Roles",
            me.roles.length === 0 ? (
              "Member"
            ) : (
              <span key="roles" className="flex flex-wrap gap-1">
                {me.roles.map((role) => (
                  <Tag key={role.name} tone="accent">
                    {role.display_name || role.name}
                  </Tag>
                ))}
              </span>
            ),
          ],
          [
            "Organizations",
            own === undefined
              ? "-"
              : own
                  .map((organization) => organization.display_name || organization.name)
                  .join(", ") || "none",
          ],
          [
            "User ID",
            <code key="id" className="text-sm">
              {me.id}
            </code>,
          ],
        ]}
      />
    </Section>
  );
}

function Groups({ me }: { me: User }) {
  const groups = useQuery(myGroups(me.id));
  const shown = (groups.data ?? []).filter((group) => group.id !== group.organization_id);
  return (
    <Section
      title="Your groups"
      description="Groups give access to templates, shared workspaces and quota."
      padded={false}
    >
      {groups.isPending ? <SkeletonRows rows={2} /> : null}
      {groups.isError ? (
        <div className="p-4">
          <Failure error={groups.error} retry={() => void groups.refetch()} />
        </div>
      ) : null}
      {groups.data && shown.length === 0 ? (
        <Empty icon={Users} title="You are not in any group" level={3}>
          An administrator of your organization can add you to a group.
        </Empty>
      ) : null}
      {shown.length > 0 ? (
        <ul aria-label="Your groups" className="divide-y divide-line">
          {shown.map((group) => (
            <li key={group.id} className="flex items-center gap-3 px-5 py-2.5">
              <Avatar
                name={group.display_name || group.name}
                src={group.avatar_url}
                size="sm"
                square
              />
              <span className="min-w-0 flex-1 truncate font-medium">
                {group.display_name || group.name}
              </span>
              <span className="text-sm text-muted">
                {group.organization_display_name || group.organization_name} ·{" "}
                {countedAtStart(group.total_member_count, "member")}
              </span>
            </li>
          ))}
        </ul>
      ) : null}
    </Section>
  );
}
