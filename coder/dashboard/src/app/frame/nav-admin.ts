// The "Admin settings" menu: each entry is for users who may see its pages.
import type { NavItem } from "../../features/navigation/nav-item";
import { DEPLOYMENT } from "../../pages/deployment/nav";
import type { Permissions } from "../../api/permissions";

/** Any administration page of any organization. */
const administersOrganizations = (may: Permissions): boolean =>
  may.editAnyOrganization ||
  may.createOrganization ||
  may.viewAnyMembers ||
  may.viewAnyGroup ||
  may.viewAnyIdpSync ||
  may.viewAnyProvisioners ||
  may.viewAnyProvisionerJobs;

export const ADMIN: readonly NavItem[] = [
  {
    to: "/deployment",
    text: "Deployment",
    allowed: (may) =>
      DEPLOYMENT.some((group) => group.items.some((item) => item.allowed?.(may) ?? true)),
    words: "settings administration",
  },
  {
    to: "/organizations",
    text: "Organizations",
    allowed: administersOrganizations,
    words: "members groups roles provisioners",
  },
  {
    to: "/audit",
    text: "Audit logs",
    allowed: (may) => may.viewAnyAuditLog,
    words: "history changes",
  },
  {
    to: "/connectionlog",
    text: "Connection logs",
    allowed: (may) => may.viewAnyConnectionLog,
    words: "ssh sessions",
  },
  {
    to: "/health",
    text: "Healthcheck",
    allowed: (may) => may.viewDebugInfo,
    words: "status database derp websocket",
  },
];

/** Whether an address is one of the administration's pages. */
export const isAdminPage = (pathname: string): boolean =>
  ADMIN.some(({ to }) => pathname === to || pathname.startsWith(`${to}/`));
