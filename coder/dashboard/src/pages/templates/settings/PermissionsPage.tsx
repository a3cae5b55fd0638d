// The users and groups that can use or change a template.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { patch } from "../../../api/client";
import { templateAcl, templateAclAvailable } from "../../../api/queries/templates";
import { AccessList, type Entry } from "../../../features/person/AccessList";
import { Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { PageHead, Stack } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { groupEntry } from "../../../features/person/everyone";
import { BuildTokens } from "./BuildTokens";
import { useSettingsTemplate } from "./SettingsLayout";

const ROLES = [
  ["use", "Use", "create workspaces from this template"],
  ["admin", "Admin", "change its files, versions and settings, and delete it"],
] as const;

export function TemplatePermissionsPage() {
  const template = useSettingsTemplate();
  useTitle(template.name, "Permissions");
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const acl = useQuery(templateAcl(template.id));
  const search = useQuery({
    ...templateAclAvailable(template.id, text),
    placeholderData: keepPreviousData,
  });
  const available = search.data;
  const results: Omit<Entry, "role">[] = [
    ...(available?.groups ?? []).map(groupEntry),
    ...(available?.users ?? []).map((user) => ({
      id: user.id,
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
      hint: user.email,
      picture: user.avatar_url,
      role: user.role,
    })),
  ];
  const change = (entry: Omit<Entry, "role">, role: string) =>
    patch(`/api/v2/templates/${template.id}/acl`, {
      [entry.kind === "user" ? "user_perms" : "group_perms"]: { [entry.id]: role },
    }).then(
      async () => {
        await queries.invalidateQueries({ queryKey: ["templates", template.id, "acl"] });
        return true;
      },
      (error: unknown) => {
        toast.failed("Failed to update the permission", error);
        return false;
      },
    );
  return (
    <>
      <PageHead title="Permissions" />
      <Stack>
        {acl.isPending ? <SkeletonRows rows={2} /> : null}
        {acl.isError ? <Failure error={acl.error} retry={() => void acl.refetch()} /> : null}
        {acl.data ? (
          <Section
            title="Access"
            description="Use: create workspaces from it. Admin: also change its files, versions and settings."
          >
            <AccessList
              label="Users and groups"
              entries={entries}
              roles={ROLES}
              results={results}
              onSearch={setText}
              searchError={search.error}
              onChange={change}
              emptyText="Only administrators can use this template. Add a user or a group above."
            />
          </Section>
        ) : null}
        <BuildTokens template={template.id} />
      </Stack>
    </>
  );
}
