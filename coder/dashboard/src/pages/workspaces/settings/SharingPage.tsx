// The users and groups that share a workspace.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { get, patch } from "../../../api/client";
import { members } from "../../../api/queries/organizations";
import { sharingSettings, workspaceAcl } from "../../../api/queries/workspaces";
import type { Group } from "../../../api/types";
import { AccessList, type Entry } from "../../../features/person/AccessList";
import { Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { Notice } from "../../../ui/Notice";
import { PageHead } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { CopyButton } from "../../../ui/text/CodeBox";
import { toast } from "../../../ui/toast";
import { groupEntry, groupName } from "../../../features/person/everyone";
import { useSettingsWorkspace } from "./SettingsLayout";

const SHOWN = 25; // the server returns more as the user types
const ROLES = [
  ["use", "Use", "use its terminal, SSH and applications, start and stop it"],
  ["admin", "Admin", "use this workspace, change and share it"],
] as const;

export function SharingPage() {
  const workspace = useSettingsWorkspace();
  useTitle(workspace.name, "Sharing");
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const settings = useQuery(sharingSettings(workspace.organization_id)).data;
  const acl = useQuery(workspaceAcl(workspace.id));
  // Members see the members of their organization; the list of all users is for administrators.
  const userSearch = useQuery({
    ...members(workspace.organization_id, text, 1, SHOWN),
    retry: false,
  });
  const users = userSearch.data?.members ?? [];
  const groupList = useQuery({
    queryKey: ["organizations", workspace.organization_id, "groups"],
    queryFn: () => get<Group[]>(`/api/v2/organizations/${workspace.organization_id}/groups`),
    retry: false,
  });
  const groups = groupList.data ?? [];
  const results: Omit<Entry, "role">[] = [
    ...groups
      .filter((group) => groupName(group).toLowerCase().includes(text.toLowerCase()))
      .map(groupEntry),
    ...users
      .filter((user) => user.user_id !== workspace.owner_id)
      .map((user) => ({
        id: user.user_id,
        kind: "user" as const,
        name: user.username,
        hint: user.email,
        picture: user.avatar_url,
      })),
  ];
  const entries: Entry[] = [
    ...(acl.data?.group ?? []).map((group) => ({ ...groupEntry(group), role: group.role })),
    ...(acl.data?.users ?? []).map((user) => ({
      id: user.id,
      kind: "user" as const,
      name: user.username,
      hint: user.name,
      picture: user.avatar_url,
      role: user.role,
    })),
  ];
  const change = (entry: Omit<Entry, "role">, role: string) =>
    patch(`/api/v2/workspaces/${workspace.id}/acl`, {
      [entry.kind === "user" ? "user_roles" : "group_roles"]: { [entry.id]: role },
    }).then(
      async () => {
        await Promise.all([
          queries.invalidateQueries({ queryKey: ["workspaces", workspace.id, "acl"] }),
          queries.invalidateQueries({ queryKey: ["workspace"] }),
        ]);
        return true;
      },
      (error: unknown) => {
        toast.failed("Failed to update sharing", error);
        return false;
      },
    );
  const off = settings?.sharing_globally_disabled
    ? "This deployment"
    : settings?.sharing_disabled
      ? "This organization"
      : "";
  return (
    <>
      <PageHead
        title="Workspace sharing"
        description="Users and groups that can use this workspace in addition to its owner."
        actions={
          <CopyButton
            label="Copy link"
            text={`${window.location.origin}/@${workspace.owner_name}/${workspace.name}`}
          />
        }
      />
      {off ? <Notice kind="info" title={`${off} has sharing disabled`} /> : null}
      {acl.isPending ? <SkeletonRows rows={2} /> : null}
      {acl.isError && !off ? <Failure error={acl.error} retry={() => void acl.refetch()} /> : null}
      {acl.data && !off ? (
        <Section
          title="Access"
          description="Use: terminal, SSH, applications, start and stop. Admin: also change and share it."
        >
          <AccessList
            label="Users and groups"
            entries={entries}
            roles={ROLES}
            results={results}
            onSearch={setText}
            searchError={
              [userSearch, groupList].find((query) => query.isLoadingError)?.error ?? null
            }
            onChange={change}
            emptyText="Only the owner can use this workspace. Add a user or a group above."
          />
        </Section>
      ) : null}
    </>
  );
}
