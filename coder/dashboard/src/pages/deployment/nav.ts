// The pages of the deployment, in menu order. A page of another area is added with a line here.
import type { Permissions } from "../../api/permissions";
import type { SideGroup } from "../../features/navigation/SidePage";

// Every user may read the proxies, to choose one in the top bar: that alone is no administration
// permission.
const administersProxies = (may: Permissions): boolean =>
  may.editWorkspaceProxies || (may.viewWorkspaceProxies && may.viewDeploymentConfig);

export const DEPLOYMENT: readonly SideGroup[] = [
  {
    items: [
      { to: "/deployment/overview", text: "Overview", allowed: (may) => may.viewDeploymentConfig },
    ],
  },
  {
    title: "People",
    items: [
      {
        to: "/deployment/users",
        text: "Users",
        allowed: (may) => may.viewUsers,
        words: "people accounts invite",
      },
      { to: "/deployment/groups", text: "Groups", allowed: (may) => may.viewAnyGroup },
      {
        to: "/deployment/roles",
        text: "Roles",
        allowed: (may) => may.viewUsers,
        words: "permissions rights",
      },
      {
        to: "/deployment/idp-org-sync",
        text: "Organization sync",
        allowed: (may) => may.viewOrganizationIdpSync,
        words: "idp sso claims",
      },
    ],
  },
  {
    title: "Branding and notifications",
    items: [
      {
        to: "/deployment/appearance",
        text: "Appearance",
        allowed: (may) => may.editDeploymentConfig,
        words: "logo banner name",
      },
      {
        to: "/deployment/notifications",
        text: "Notifications",
        allowed: (may) => may.viewDeploymentConfig,
        words: "mail smtp webhook",
      },
    ],
  },
  {
    title: "Connections",
    items: [
      {
        to: "/deployment/external-auth",
        text: "External authentication",
        allowed: (may) => may.viewDeploymentConfig,
        words: "git github gitlab",
      },
      {
        to: "/deployment/oauth2-provider/apps",
        text: "OAuth2 applications",
        allowed: (may) => may.editOAuth2Apps,
      },
    ],
  },
  {
    title: "Server settings",
    items: [
      {
        to: "/deployment/workspace-proxies",
        text: "Workspace proxies",
        allowed: administersProxies,
        words: "regions latency",
      },
      {
        to: "/deployment/userauth",
        text: "User authentication",
        allowed: (may) => may.viewDeploymentConfig,
        words: "oidc github login sso",
      },
      {
        to: "/deployment/network",
        text: "Network",
        allowed: (may) => may.viewDeploymentConfig,
        words: "derp tls http",
      },
      { to: "/deployment/security", text: "Security", allowed: (may) => may.viewDeploymentConfig },
      {
        to: "/deployment/observability",
        text: "Observability",
        allowed: (may) => may.viewDeploymentConfig,
        words: "logging metrics prometheus tracing",
      },
      {
        to: "/deployment/settings",
        text: "All settings",
        allowed: (may) => may.viewDeploymentConfig,
        words: "options flags environment configuration",
      },
    ],
  },
];
