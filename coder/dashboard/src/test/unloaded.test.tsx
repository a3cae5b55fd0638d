// What did not load is not empty, and not zero: each page says that it is unknown.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { expect, it } from "vitest";

import { DeploymentBar } from "../app/frame/DeploymentBar";
import type {
  AuthorizationCheck,
  Template,
  TemplateVersion,
  Workspace,
  WorkspaceAgent,
} from "../api/types";
import { ProfilePage } from "../pages/account/ProfilePage";
import { NotificationsPage } from "../pages/account/NotificationsPage";
import { OverviewPage } from "../pages/deployment/OverviewPage";
import { InboxPage } from "../pages/inbox/InboxPage";
import { MembersPage } from "../pages/organizations/MembersPage";
import { OrganizationLayout } from "../pages/organizations/OrganizationLayout";
import { OrganizationsPage } from "../pages/organizations/OrganizationsPage";
import { OrganizationSettingsPage } from "../pages/organizations/SettingsPage";
import { NewTask } from "../pages/tasks/NewTask";
import { TasksPage } from "../pages/tasks/TasksPage";
import { Made, Variables } from "../pages/templates/editor/Output";
import { TemplateLayout } from "../pages/templates/TemplateLayout";
import { Containers } from "../pages/workspaces/agent/Containers";
import { PortsButton } from "../pages/workspaces/agent/Ports";
import { HomePage } from "../pages/workspaces/home/HomePage";
import { CreateUserPage } from "../pages/people/CreateUserPage";
import { AccessList } from "../features/person/AccessList";
import { PersonSearch } from "../features/person/PersonSearch";
import { Refusal, SignedIn, visit, type Answers } from "./world";

const BUSY = new Refusal(500, "Database is busy.");
const ORGANIZATION = { id: "o", name: "crew", display_name: "Crew", is_default: true };
const VERSION = { id: "v", name: "v1", job: { status: "succeeded" } } as unknown as TemplateVersion;
const TEMPLATE = {
  id: "t",
  name: "box",
  display_name: "Box",
  organization_id: "o",
  organization_name: "crew",
  active_version_id: "v",
  active_user_count: 1,
  updated_at: "2026-01-01T00:00:00Z",
} as unknown as Template;
const AGENT = { id: "a", name: "main", parent_id: null } as WorkspaceAgent;
const WORKSPACE = {
  id: "w",
  name: "lab",
  owner_id: "me",
  owner_name: "ana",
  organization_id: "o",
  template_id: "t",
  last_used_at: "2026-01-01T00:00:00Z",
  template_name: "box",
  template_icon: "",
  health: { healthy: true },
  latest_build: { status: "stopped", job: {}, resources: [{ type: "coder_devcontainer" }] },
} as unknown as Workspace;
const MEMBER = { user_id: "b", username: "bob", email: "", roles: [], global_roles: [] };
const STATS = {
  collected_at: "2026-01-01T00:00:00Z",
  workspaces: {
    running: 30,
    stopped: 5,
    rx_bytes: 0,
    tx_bytes: 0,
    connection_latency_ms: { P50: -1 },
  },
  session_count: {},
};

const SHARING = {
  label: "Users",
  entries: [],
  roles: [["use", "Use", "use it"]] as const,
  results: [],
  onSearch: () => undefined,
  onChange: async () => true,
  emptyText: "Only the owner.",
};

interface Case {
  page: ReactNode;
  path?: string;
  at?: string;
  answers?: Answers;
  then?: () => Promise<void>;
  says: RegExp;
  /** The claim that nothing supports. */
  not?: RegExp;
}
const press = async (role: string, name: RegExp) =>
  userEvent.click(await screen.findByRole(role, { name }));

const CASES: Record<string, Case> = {
  "running workspaces of the deployment": {
    page: <DeploymentBar />,
    answers: { "GET /api/v2/deployment/stats": STATS, "GET /api/v2/debug/health": {} },
    says: /Running: -/,
    not: /Running: 30/,
  },
  "what waits for the user": {
    page: <HomePage />,
    answers: {
      "GET /api/v2/workspaces": { workspaces: [WORKSPACE], count: 1 },
      "GET /api/v2/notifications/inbox": { notifications: [], unread_count: 0 },
    },
    says: /It is unknown what waits for you/,
    not: /Nothing waits for you/,
  },
  "templates for tasks": {
    page: <TasksPage />,
    answers: { "GET /api/v2/tasks": { tasks: [], count: 0 } },
    says: /Failed to load the templates for tasks/,
  },
  "presets of a task": {
    page: <NewTask templates={[TEMPLATE]} />,
    answers: { "GET /api/v2/templateversions/v/external-auth": [] },
    says: /Failed to load the presets/,
  },
  "external accounts of a task": {
    page: <NewTask templates={[TEMPLATE]} />,
    answers: { "GET /api/v2/templateversions/v/presets": [] },
    says: /Failed to load the external accounts/,
  },
  experiments: {
    page: <OverviewPage />,
    says: /Failed to load the experiments/,
    not: /No experiments are enabled/,
  },
  "unread messages": { page: <InboxPage />, says: /Database is busy/, not: /No unread messages/ },
  "own organizations": {
    page: <ProfilePage />,
    answers: { "GET /api/v2/groups": [] },
    says: /Organizations-/,
    not: /Organizationsnone/,
  },
  "custom notifications": {
    page: <NotificationsPage />,
    answers: {
      "GET /api/v2/users/me/notifications/preferences": [],
      "GET /api/v2/notifications/templates/system": [],
    },
    says: /Database is busy/,
    not: /This deployment sends no notifications/,
  },
  "groups of members": {
    page: <MembersPage />,
    path: "/organizations/:organization",
    at: "/organizations/crew",
    answers: {
      "GET /api/v2/organizations": [ORGANIZATION],
      "GET /api/v2/organizations/crew/members/roles": [],
      "GET /api/v2/organizations/crew/paginated-members": { members: [MEMBER], count: 1 },
      "GET /api/v2/users": { users: [], count: 0 },
    },
    says: /bob.*-/,
    not: /None/,
  },
  "organizations of a page": {
    page: <OrganizationLayout />,
    path: "/organizations/:organization",
    at: "/organizations/crew",
    says: /Failed to load the organizations/,
  },
  "permissions in organizations": {
    page: <OrganizationsPage />,
    answers: {
      "GET /api/v2/organizations": [ORGANIZATION],
      "POST /api/v2/authcheck": ({ checks }: { checks: Record<string, AuthorizationCheck> }) =>
        "viewDaemons" in checks ? BUSY : {},
    },
    says: /Failed to load your permissions/,
    not: /need permission/,
  },
  "settings of an organization": {
    page: <OrganizationSettingsPage />,
    path: "/organizations/:organization",
    at: "/organizations/crew",
    answers: { "GET /api/v2/organizations": [ORGANIZATION] },
    says: /Failed to load the roles of new members.*Failed to load the setting of workspace sharing/,
  },
  "users of a template": {
    page: <TemplateLayout />,
    path: "/templates/:organization/:template",
    at: "/templates/crew/box",
    answers: {
      "GET /api/v2/organizations": [ORGANIZATION],
      "GET /api/v2/organizations/crew/templates/box": TEMPLATE,
      "GET /api/v2/templateversions/v": VERSION,
    },
    then: async () => {
      await press("button", /Open template menu/);
      await press("menuitem", /Delete/);
    },
    says: /It is unknown whether workspaces use this template/,
  },
  "resources of a version": {
    page: <Made version={VERSION} />,
    says: /Failed to load the resources/,
  },
  "variables of a version": {
    page: <Variables version={VERSION} values={{}} onChange={() => undefined} />,
    says: /Failed to load the variables/,
    not: /has no variables/,
  },
  "dev containers": {
    page: <Containers workspace={WORKSPACE} agent={AGENT} mayConnect />,
    says: /Failed to load the dev containers/,
  },
  "the number of ports": {
    page: <PortsButton workspace={WORKSPACE} agent={AGENT} />,
    says: /Open ports/,
    not: /Open ports\s*0/,
  },
  "the limit of shared ports": {
    page: <PortsButton workspace={WORKSPACE} agent={AGENT} />,
    answers: {
      "GET /api/v2/workspaceagents/a/listening-ports": { ports: [] },
      "GET /api/v2/workspaces/w/port-share": { shares: [] },
    },
    then: () => press("button", /Open ports/),
    says: /The limit of the template is unknown/,
    not: /allows only the owner/,
  },
  "roles of a new user": {
    page: <CreateUserPage />,
    answers: { "GET /api/v2/organizations": [] },
    says: /Failed to load the roles/,
  },
  "users and groups to share with": {
    page: <AccessList {...SHARING} searchError={new Error("Database is busy.")} />,
    then: () => press("combobox", /User or group/),
    says: /The search failed: Database is busy/,
    not: /No results/,
  },
  "users to add": {
    page: <PersonSearch exclude={new Set()} onAdd={async () => undefined} />,
    then: () => press("combobox", /User/),
    says: /Failed to search users: Database is busy/,
    not: /No users found/,
  },
};

/** What fails: every request that a case does not answer. */
const FAILING: Answers = {
  "GET /api/v2/users/me": { id: "me", username: "ana", roles: [], organization_ids: ["o"] },
  "GET *": BUSY,
};

it.each(Object.entries(CASES))(
  "%s: unknown is not empty",
  async (_, { page, path = "/", at = "/", answers = {}, then, says, not }) => {
    const seen = visit([{ element: <SignedIn bare />, children: [{ path, element: page }] }], at, {
      ...FAILING,
      ...answers,
    });
    await then?.();
    await waitFor(() => expect(document.body).toHaveTextContent(says));
    await waitFor(() => expect(seen.fetching()).toBe(0));
    expect(document.body).toHaveTextContent(says);
    if (not) expect(document.body).not.toHaveTextContent(not);
  },
);

const sources = import.meta.glob<string>(["../**/*.{ts,tsx}", "!../**/*.test.{ts,tsx}"], {
  query: "?raw",
  import: "default",
  eager: true,
});

it("turns no failure into an empty result", () => {
  const hiding = Object.entries(sources).filter(([, text]) =>
    /\.catch\(\(\w*\) => (?:\[\]|\(\{\}\)|0|"")\)/.test(text),
  );
  expect(Object.keys(sources).length).toBeGreaterThan(300);
  expect(hiding.map(([file]) => file)).toEqual([]);
});
