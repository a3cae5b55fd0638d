// The site-wide roles: the purpose and the exact permissions of each. They are assigned on the
// users page.
import { useQuery } from "@tanstack/react-query";

import { siteRoles, users } from "../../api/queries/people";
import { usePermissions } from "../../api/permissions";
import type { AssignableRoles } from "../../api/types";
import { Section } from "../../ui/Card";
import { Failure } from "../../ui/Failure";
import { SkeletonRows } from "../../ui/Loading";
import { PageHead, Stack, TextLink } from "../../ui/Page";
import { useTitle } from "../../ui/title";
import { summary } from "../../features/organization/permission-grid";
import { SITE_ROLE_HINTS } from "../../features/person/roles";
import { PermissionDenied } from "../../ui/PermissionDenied";
import { countedAtStart } from "../../lib/words";

export function SiteRolesPage() {
  useTitle("Roles");
  const may = usePermissions();
  const roles = useQuery(siteRoles);
  if (may.known && !may.viewUsers)
    return <PermissionDenied subject="the roles of this deployment" />;
  return (
    <>
      <PageHead
        title="Roles"
        description="These roles apply in all organizations. Organization roles are on each organization’s pages."
      />
      {roles.isPending ? <SkeletonRows rows={4} /> : null}
      {roles.isError ? <Failure error={roles.error} retry={() => void roles.refetch()} /> : null}
      <Stack>
        {(roles.data ?? []).map((role) => (
          <Role key={role.name} role={role} />
        ))}
      </Stack>
    </>
  );
}

function Role({ role }: { role: AssignableRoles }) {
  const people = useQuery(users(`role:${role.name}`, 1, 1)).data?.count;
  const rows = summary([...role.site_permissions, ...role.user_permissions]);
  return (
    <Section
      title={role.display_name || role.name}
      description={SITE_ROLE_HINTS[role.name]}
      actions={
        people === undefined ? null : (
          <TextLink to={`/deployment/users?filter=${encodeURIComponent(`role:${role.name}`)}`}>
            {countedAtStart(people, "user")}
          </TextLink>
        )
      }
    >
      <details>
        <summary className="text-sm font-medium text-muted">
          Exact permissions ({rows.length})
        </summary>
        <ul className="mt-3 grid grid-cols-2 gap-x-8 gap-y-1.5 text-sm max-lg:grid-cols-1">
          {rows.map((row) => (
            <li key={row.text} className="min-w-0 [overflow-wrap:anywhere]">
              <span className="font-medium">{row.text}</span>{" "}
              <span className="text-muted">{row.actions}</span>
            </li>
          ))}
        </ul>
      </details>
    </Section>
  );
}
