// Who may use a template, and who may change it.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { patch } from "../../../api/client";
import { templateAcl, templateAclAvailable } from "../../../api/queries/templates";
import { AccessList, type Entry } from "../../../ui/forms/AccessList";
import { Section } from "../../../ui/Card";
import { Failure } from "../../../ui/Failure";
import { SkeletonRows } from "../../../ui/Loading";
import { PageHead } from "../../../ui/Page";
import { useTitle } from "../../../ui/title";
import { toast } from "../../../ui/toast";
import { useSettingsTemplate } from "./SettingsLayout";

const ROLES = [["use", "Use"], ["admin", "Admin"]] as const;

export function TemplatePermissionsPage() {
  const template = useSettingsTemplate();
  useTitle(template.name, "Permissions");
  const queries = useQueryClient();
  const [text, setText] = useState("");
  const acl = useQuery(templateAcl(template.id));
  const available = useQuery({ ...templateAclAvailable(template.id, text), placeholderData: keepPreviousData }).data;
  const groupName = (group: { id: string; name: string; display_name: string; organization_id: string }) => (group.id === group.organization_id ? "Everyone" : group.display_name || group.name);
  const found: Omit<Entry, "role">[] = [
    ...(available?.groups ?? []).map((group) => ({ id: group.id, kind: "group" as const, name: groupName(group), hint: `Group, ${group.total_member_count} members`, picture: group.avatar_url })),
    ...(available?.users ?? []).map((user) => ({ id: user.id, kind: "user" as const, name: user.username, hint: user.email, picture: user.avatar_url })),
  ];
  const entries: Entry[] = [
    ...(acl.data?.group ?? []).map((group) => ({ id: group.id, kind: "group" as const, name: groupName(group), hint: `Group, ${group.total_member_count} members`, picture: group.avatar_url, role: group.role })),
    ...(acl.data?.users ?? []).map((user) => ({ id: user.id, kind: "user" as const, name: user.username, hint: user.email, picture: user.avatar_url, role: user.role })),
  ];
  const change = (entry: Omit<Entry, "role">, role: string) => void patch(`/api/v2/templates/${template.id}/acl`, { [entry.kind === "user" ? "user_perms" : "group_perms"]: { [entry.id]: role } })
    .then(() => queries.invalidateQueries({ queryKey: ["templates", template.id, "acl"] }), (error: unknown) => toast.failed("The permission could not be changed", error));
  return (
    <>
      <PageHead title="Permissions" />
      {acl.isPending ? <SkeletonRows rows={2} /> : null}
      {acl.isError ? <Failure error={acl.error} retry={() => void acl.refetch()} /> : null}
      {acl.data ? (
        <Section title="Who may use it" description="“Use” makes workspaces of it. “Admin” also changes its files, versions and settings.">
          <AccessList label="People and groups" entries={entries} roles={ROLES} found={found} onSearch={setText} onChange={change} emptyText="Only administrators can use it. Add a group or somebody above." />
        </Section>
      ) : null}
    </>
  );
}
