// The roles that members of an organization can have: its custom roles, and the built-in ones.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { EllipsisVertical, Eye, Pencil, Plus, ShieldCheck, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";

import { remove, seg } from "../../api/client";
import { organizationRoles } from "../../api/queries/organizations";
import type { AssignableRoles } from "../../api/types";
import { ButtonLink, IconButton } from "../../ui/Button";
import { Section } from "../../ui/Card";
import { Confirm } from "../../ui/Confirm";
import { Empty } from "../../ui/Empty";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { Menu, MenuItem } from "../../ui/Menu";
import { PageHead, Stack, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { toast } from "../../ui/toast";
import { ORGANIZATION_ROLE_HINTS } from "../../features/person/roles";
import { summary } from "../../features/organization/permission-grid";
import {
  useOrganization,
  type OrganizationView,
} from "../../features/organization/useOrganization";

export function RolesPage() {
  const view = useOrganization();
  useTitle("Custom Roles", view?.name ?? "");
  return view?.known ? <Roles view={view} /> : null;
}

function Roles({ view }: { view: OrganizationView }) {
  const { organization, may, home } = view;
  const list = useQuery(organizationRoles(organization.name));
  const queries = useQueryClient();
  const [deleting, setDeleting] = useState<AssignableRoles | null>(null);
  const own = (list.data ?? []).filter((role) => !role.built_in);
  const create = may.createRoles ? (
    <ButtonLink variant="primary" to={`${home}/roles/create`} icon={<Plus />}>
      Create custom role
    </ButtonLink>
  ) : null;
  return (
    <>
      <PageHead
        title="Roles"
        description="Roles define what members can do. Roles are additive."
        actions={create}
      />
      {list.isPending ? <SkeletonRows rows={4} /> : null}
      {list.isError ? <Failure error={list.error} retry={() => void list.refetch()} /> : null}
      {list.data ? (
        <Stack>
          <Section title="Custom roles" padded={false}>
            {own.length === 0 ? (
              <Empty level={3} icon={ShieldCheck} title="No custom roles yet" actions={create}>
                Create one if the built-in roles grant too much or too little.
              </Empty>
            ) : (
              <ul className="divide-y divide-line">
                {own.map((role) => (
                  <RoleRow
                    key={role.name}
                    role={role}
                    home={home}
                    menu={
                      may.updateRoles || may.deleteRoles ? (
                        <Menu
                          label={`Actions for ${role.display_name || role.name}`}
                          trigger={
                            <IconButton size="sm" label="Open menu">
                              <EllipsisVertical />
                            </IconButton>
                          }
                        >
                          {may.updateRoles ? (
                            <MenuItem icon={<Pencil />} to={`${home}/roles/${role.name}`}>
                              Edit
                            </MenuItem>
                          ) : null}
                          {may.deleteRoles ? (
                            <MenuItem danger icon={<Trash2 />} onSelect={() => setDeleting(role)}>
                              Delete…
                            </MenuItem>
                          ) : null}
                        </Menu>
                      ) : null
                    }
                  />
                ))}
              </ul>
            )}
          </Section>
          <Section
            title="Built-in roles"
            description="The same in every organization."
            padded={false}
          >
            <ul className="divide-y divide-line">
              {list.data
                .filter((role) => role.built_in)
                .map((role) => (
                  <RoleRow
                    key={role.name}
                    role={role}
                    home={home}
                    menu={
                      <ButtonLink
                        size="sm"
                        variant="quiet"
                        to={`${home}/roles/${role.name}`}
                        icon={<Eye />}
                        aria-label={`View permissions of ${role.display_name || role.name}`}
                      >
                        View
                      </ButtonLink>
                    }
                  />
                ))}
            </ul>
          </Section>
        </Stack>
      ) : null}
      <Confirm
        open={deleting !== null}
        onClose={() => setDeleting(null)}
        title={`Delete role ${deleting?.display_name || deleting?.name || ""}?`}
        confirm="Delete"
        typed={deleting?.name}
        typedLabel="Name of the role to delete"
        onConfirm={async () => {
          await remove(
            `/api/v2/organizations/${organization.name}/members/roles/${seg(deleting?.name ?? "")}`,
          );
          toast.done("Custom role deleted successfully.");
          await queries.invalidateQueries({
            queryKey: ["organizations", organization.name, "members"],
          });
        }}
      >
        <p>Members with this role lose its permissions at once.</p>
      </Confirm>
    </>
  );
}

function RoleRow({ role, home, menu }: { role: AssignableRoles; home: string; menu: ReactNode }) {
  const rows = summary([...role.organization_permissions, ...role.organization_member_permissions]);
  return (
    <li className="flex items-start gap-3 px-5 py-3" data-testid={`role-${role.name}`}>
      <div className="min-w-0 flex-1">
        <TextLink to={`${home}/roles/${role.name}`} className="text-text">
          {role.display_name || role.name}
        </TextLink>
        <p className="text-sm text-muted [overflow-wrap:anywhere]">
          {ORGANIZATION_ROLE_HINTS[role.name] ??
            (rows.length === 0
              ? "None"
              : rows
                  .slice(0, 4)
                  .map(
                    (row) => `${row.negate ? "not " : ""}${row.text} (${row.kind}): ${row.actions}`,
                  )
                  .join(" · ") + (rows.length > 4 ? ` · ${rows.length - 4} more` : ""))}
        </p>
      </div>
      {menu}
    </li>
  );
}
