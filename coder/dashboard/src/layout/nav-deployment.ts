// The pages of the deployment, in the order of its menu. A page of another area joins with a line here.
import type { SideGroup } from "./SidePage";

export const DEPLOYMENT: readonly SideGroup[] = [
  {
    items: [
      { to: "/deployment/overview", text: "Overview", allowed: (may) => may.viewDeploymentConfig },
    ],
  },
  {
    title: "People",
    items: [
      { to: "/deployment/users", text: "Users", allowed: (may) => may.viewUsers, words: "people accounts invite" },
      { to: "/deployment/groups", text: "Groups", allowed: (may) => may.viewEveryGroup },
    ],
  },
  {
    title: "Server settings",
    items: [
      { to: "/deployment/workspace-proxies", text: "Workspace proxies", allowed: (may) => may.viewWorkspaceProxies, words: "regions latency" },
      { to: "/deployment/userauth", text: "User authentication", allowed: (may) => may.viewDeploymentConfig, words: "oidc github login sso" },
      { to: "/deployment/network", text: "Network", allowed: (may) => may.viewDeploymentConfig, words: "derp tls http" },
      { to: "/deployment/security", text: "Security", allowed: (may) => may.viewDeploymentConfig },
      { to: "/deployment/observability", text: "Observability", allowed: (may) => may.viewDeploymentConfig, words: "logging metrics prometheus tracing" },
      { to: "/deployment/settings", text: "All settings", allowed: (may) => may.viewDeploymentConfig, words: "options flags environment configuration" },
    ],
  },
];
