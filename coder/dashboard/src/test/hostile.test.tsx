// Every page that shows what people, templates and programs have written, with the worst they can write.
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Outlet, type RouteObject } from "react-router";
import { expect, it } from "vitest";

import type { PreviewParameter, Workspace } from "../api/types";
import { SignedIn } from "./world";
import { Announcements } from "../features/appearance/Announcements";
import { CommandPalette } from "../app/frame/CommandPalette";
import { UserMenu } from "../app/frame/UserMenu";
import { harmOf, hostile, HOSTILE, readOf } from "./hostile";
import { FakeSocket, Refusal, visit, type Answers } from "./world";
import { Failure } from "../ui/Failure";
import { Line } from "../ui/text/LogView";
import { ExternalLinksPage } from "../pages/account/ExternalLinksPage";
import { SecretsPage } from "../pages/account/SecretsPage";
import { TokensPage } from "../pages/account/TokensPage";
import { ParameterField } from "../features/parameter/ParameterField";
import { OAuth2AppsPage } from "../pages/deployment/OAuth2AppsPage";
import { GroupPage } from "../pages/groups/GroupPage";
import { GroupsPage } from "../pages/groups/GroupsPage";
import { InboxPage } from "../pages/inbox/InboxPage";
import { AuditPage } from "../pages/logs/AuditPage";
import { ConnectionLogPage } from "../pages/logs/ConnectionLogPage";
import { UsersPage } from "../pages/people/UsersPage";
import { JobsPage } from "../pages/provisioners/JobsPage";
import { ProxiesPage } from "../pages/proxies/ProxiesPage";
import { TasksPage } from "../pages/tasks/TasksPage";
import { DocsPage } from "../pages/templates/DocsPage";
import { InsightsPage } from "../pages/templates/InsightsPage";
import { TemplatesPage } from "../pages/templates/TemplatesPage";
import { VersionsPage } from "../pages/templates/VersionsPage";
import { Banners } from "../pages/workspaces/Banners";
import { Resources } from "../pages/workspaces/Resources";
import { WorkspacesPage } from "../pages/workspaces/WorkspacesPage";

const AT = "2026-01-01T00:00:00Z";
const user = {
  id: "u1",
  username: "mallory",
  name: "?",
  email: "?",
  avatar_url: "?",
  status: "active",
  last_seen_at: AT,
  created_at: AT,
  login_type: "password",
  roles: [{ name: "owner", display_name: "?" }],
  organization_ids: ["o"],
};
const job = {
  id: "j",
  status: "failed",
  error: "?",
  error_code: "",
  tags: { scope: "organization", "?": "?" },
  created_at: AT,
  type: "workspace_build",
  input: {},
  organization_id: "o",
  available_workers: [],
  metadata: {
    template_name: "box",
    template_display_name: "?",
    template_icon: "?",
    workspace_name: "lab",
    template_version_name: "?",
  },
  worker_name: "?",
};
const app = (id: string, more: object) => ({
  id,
  slug: id,
  display_name: "?",
  icon: "?",
  url: "?",
  external: true,
  subdomain: false,
  hidden: false,
  health: "unhealthy",
  group: "",
  open_in: "tab",
  tooltip: "?",
  ...more,
});
const agent = {
  id: "a",
  name: "main",
  status: "connected",
  lifecycle_state: "ready",
  operating_system: "linux",
  architecture: "amd64",
  version: "?",
  health: { healthy: false, reason: "?" },
  troubleshooting_url: "?",
  directory: "?",
  display_apps: ["web_terminal", "vscode"],
  scripts: [],
  apps: [
    app("one", {}),
    app("two", {}),
    app("three", {}),
    app("four", { group: "?" }),
    app("five", { external: false, url: "http://localhost:1" }),
  ],
  log_sources: [
    { id: "s", display_name: "?", icon: "?" },
    { id: "t", display_name: "?", icon: "?" },
  ],
  metadata: Array.from({ length: 10 }, (_, index) => ({
    description: { key: `k${index}`, display_name: "?", interval: 0, timeout: 1 },
    result: { value: "?", error: index % 2 ? "?" : "", age: 1 },
  })),
};
const build = {
  id: "b",
  build_number: 1,
  status: "failed",
  transition: "start",
  created_at: AT,
  template_version_id: "v",
  template_version_name: "?",
  initiator_name: "?",
  reason: "initiator",
  job,
  resources: [
    {
      id: "r",
      type: "?",
      name: "?",
      icon: "?",
      daily_cost: 1,
      hide: false,
      agents: [agent],
      metadata: Array.from({ length: 10 }, (_, index) => ({
        key: `?${index}`,
        value: "?",
        sensitive: false,
      })),
    },
    {
      id: "q",
      type: "?",
      name: "?",
      icon: "?",
      daily_cost: 0,
      hide: false,
      metadata: [{ key: "?", value: "?", sensitive: false }],
    },
  ],
};
const workspace = {
  id: "w",
  name: "lab",
  owner_id: "u1",
  owner_name: "mallory",
  owner_avatar_url: "?",
  organization_id: "o",
  organization_name: "coder",
  template_id: "t",
  template_name: "box",
  template_display_name: "?",
  template_icon: "?",
  health: { healthy: true },
  favorite: true,
  shared_with: [{ id: "x", name: "?" }],
  latest_build: build,
};
const template = {
  id: "t",
  name: "box",
  display_name: "?",
  description: "?",
  icon: "?",
  organization_id: "o",
  organization_name: "coder",
  organization_display_name: "?",
  active_version_id: "v",
  deprecated: true,
  deprecation_message: "?",
  active_user_count: 1,
  build_time_stats: {},
  updated_at: AT,
  created_by_name: "?",
};
const version = {
  id: "v",
  name: "first",
  message: "?",
  readme: Object.values(HOSTILE).join("\n\n"),
  created_by: user,
  created_at: AT,
  job,
};
const organization = {
  id: "o",
  name: "coder",
  display_name: "?",
  description: "?",
  icon: "?",
  is_default: true,
};
const group = {
  id: "g",
  name: "staff",
  display_name: "?",
  avatar_url: "?",
  quota_allowance: 0,
  members: [user, { ...user, id: "u2" }],
  total_member_count: 2,
  source: "user",
  organization_id: "o",
  organization_name: "coder",
  organization_display_name: "?",
};
const diff = Object.fromEntries(
  Object.keys(HOSTILE).map((kind) => [kind, { old: "?", new: "?", secret: false }]),
);
const logs = {
  id: "l",
  time: AT,
  ip: "?",
  user_agent: "?",
  resource_type: "template",
  resource_target: "?",
  resource_link: "?",
  action: "write",
  diff: { ...diff, "?": { old: "?", new: { deep: "?" }, secret: false } },
  status_code: 200,
  additional_fields: { workspace_name: "?" },
  description: "{user} updated template {target} ?",
  user,
  organization,
  request_id: "q",
  is_deleted: false,
};
const parameter = (form_type: string) => ({
  name: form_type,
  display_name: "?",
  description: "?",
  icon: "?",
  type: "string",
  form_type,
  styling: { placeholder: "?" },
  mutable: true,
  ephemeral: false,
  required: true,
  value: { value: "?", valid: true },
  default_value: { value: "?", valid: true },
  validations: [],
  diagnostics: [{ severity: "error", summary: "?", detail: "?", extra: { code: "" } }],
  options: Array.from({ length: 10 }, (_, index) => ({
    name: "?",
    description: "?",
    icon: "?",
    value: { value: `${form_type}-${index}`, valid: true },
  })),
});

const ANSWERS: Answers = {
  "GET /api/v2/users/me": { ...user, id: "u1" },
  "GET /api/v2/users": { users: [user], count: 1 },
  "GET /api/v2/users/roles": [
    { name: "owner", display_name: "?", assignable: true, built_in: false },
  ],
  "GET /api/v2/organizations": [
    organization,
    { ...organization, id: "p", name: "other", is_default: false },
  ],
  "GET /api/v2/experiments": ["oauth2"],
  "GET /api/v2/buildinfo": { version: "?" },
  "GET /api/v2/appearance": {
    application_name: "?",
    logo_url: "?",
    docs_url: "?",
    support_links: [
      { name: "?", target: "?", icon: "?" },
      { name: "?", target: "?", icon: "?" },
    ],
    announcement_banners: Object.keys(HOSTILE).map(() => ({
      enabled: true,
      message: "?",
      background_color: "red;background:url(javascript:window.harmed=1)",
    })),
  },
  "GET /api/v2/workspaces": { workspaces: [workspace], count: 1 },
  "GET /api/v2/templates": [template, { ...template, id: "t2", deprecated: false }],
  "GET /api/v2/templates/t": template,
  "GET /api/v2/templates/t/versions": [version],
  "GET /api/v2/tasks": {
    tasks: [
      {
        id: "k",
        name: "mend",
        display_name: "?",
        organization_id: "o",
        owner_id: "u1",
        owner_name: "mallory",
        initial_prompt: "?",
        status: "active",
        current_state: { state: "working", message: "?", uri: "?", timestamp: AT },
        created_at: AT,
        workspace_name: "x",
        template_name: "box",
        template_icon: "?",
      },
    ],
    count: 1,
  },
  "GET /api/v2/audit": { audit_logs: [logs], count: 1, count_cap: 0 },
  "GET /api/v2/connectionlog": {
    connection_logs: [
      {
        id: "c",
        connect_time: AT,
        organization,
        workspace_owner_username: "mallory",
        workspace_name: "?",
        agent_name: "?",
        ip: "?",
        type: "workspace_app",
        web_info: { user, user_agent: "?", slug_or_port: "?", status_code: 200 },
      },
      {
        id: "d",
        connect_time: AT,
        organization,
        workspace_owner_username: "mallory",
        workspace_name: "?",
        agent_name: "?",
        ip: "?",
        type: "ssh",
        ssh_info: { disconnect_time: AT, disconnect_reason: "?", exit_code: 1 },
      },
    ],
    count: 2,
    count_cap: 0,
  },
  "GET /api/v2/organizations/coder/groups": [group],
  "GET /api/v2/organizations/coder/groups/staff": group,
  "GET /api/v2/groups": [group],
  "GET /api/v2/organizations/coder/provisionerjobs": [job, { ...job, id: "j2", status: "pending" }],
  "GET /api/v2/organizations/o/provisionerjobs/j2/why": { summary: "?", reasons: [] },
  "GET /api/v2/notifications/inbox": {
    notifications: Object.keys(HOSTILE).map((id) => ({
      id,
      user_id: "u1",
      template_id: "t",
      targets: [],
      title: "?",
      content: "?",
      icon: "?",
      actions: [
        { label: "?", url: "?" },
        { label: "?", url: "?" },
      ],
      read_at: null,
      created_at: AT,
    })),
    unread_count: 2,
  },
  "GET /api/v2/users/u1/secrets": [
    {
      id: "s",
      name: "?",
      description: "?",
      env_name: "?",
      file_path: "?",
      enabled: true,
      created_at: AT,
      updated_at: AT,
    },
  ],
  "GET /api/v2/users/me/keys/tokens": [
    {
      id: "k",
      token_name: "?",
      username: "?",
      user_id: "u1",
      last_used: AT,
      expires_at: "2040-01-01T00:00:00Z",
      created_at: AT,
      scopes: ["?"],
      scope: "all",
      lifetime_seconds: 1,
      login_type: "token",
      allow_list: [],
      ip_address: "",
      user_agent: "?",
    },
  ],
  "GET /api/v2/external-auth": {
    providers: [
      {
        id: "forge",
        type: "?",
        device: false,
        display_name: "?",
        display_icon: "?",
        allow_refresh: false,
        allow_validate: false,
      },
    ],
    links: [
      {
        provider_id: "forge",
        created_at: AT,
        updated_at: AT,
        has_refresh_token: false,
        expires: AT,
        authenticated: true,
        validate_error: "?",
      },
    ],
  },
  "GET /api/v2/oauth2-provider/apps": [
    {
      id: "x",
      name: "?",
      callback_url: "?",
      icon: "?",
      endpoints: { authorization: "?", token: "?", device_authorization: "?" },
    },
  ],
  "GET /api/v2/oauth2-provider/settings": { dynamic_client_registration_enabled: false },
  "GET /api/v2/workspaceproxies": {
    regions: [
      {
        id: "1",
        name: "primary",
        display_name: "?",
        icon_url: "?",
        path_app_url: "?",
        wildcard_hostname: "?",
        healthy: true,
        version: "?",
        status: { status: "unhealthy", report: { errors: ["?"], warnings: ["?"] } },
      },
      {
        id: "2",
        name: "far",
        display_name: "?",
        icon_url: "?",
        path_app_url: "",
        wildcard_hostname: "",
        healthy: false,
        version: "?",
        status: { status: "unreachable", report: { errors: ["?"], warnings: [] } },
      },
    ],
  },
  "GET /api/v2/regions": { regions: [] },
  "GET /api/v2/applications/host": { host: "*.apps.example.com" },
  "GET /api/v2/insights/templates": {
    report: {
      active_users: 1,
      apps_usage: [{ slug: "x", display_name: "?", icon: "?", seconds: 9 }],
      parameters_usage: [{ name: "?", display_name: "?", values: [{ value: "?", count: 1 }] }],
    },
    interval_reports: [],
  },
  "GET /api/v2/insights/user-latency": { report: { users: [] } },
  "GET /api/v2/insights/user-activity": {
    report: { users: [{ user_id: "u1", username: "?", avatar_url: "?", seconds: 9 }] },
  },
  "GET /api/v2/workspaceagents/a/lights": {
    host: {
      status: "bad",
      values: [{ name: "?", value: "?", status: "bad", at: AT, age_seconds: 1 }],
    },
    agent: { status: "good", values: [] },
    path: { status: "unknown", values: [] },
  },
  "GET /api/v2/workspaceagents/a/disconnects": [
    {
      disconnected_at: new Date().toISOString(),
      returned_at: null,
      ended: "?",
      cause: "?",
      detail: "?",
      told: true,
      events: [],
    },
  ],
  "GET /api/v2/workspaceagents/a/listening-ports": {
    ports: [{ port: 8080, process_name: "?", network: "tcp" }],
  },
  "GET /api/v2/workspaceagents/a/containers": {
    devcontainers: [],
    containers: [
      {
        id: "c",
        name: "?",
        image: "?",
        labels: {},
        running: true,
        ports: [],
        status: "?",
        volumes: {},
        created_at: AT,
      },
    ],
  },
};
const given = hostile(ANSWERS);
const whole = hostile(workspace) as unknown as Workspace;
const context = {
  template: hostile(template),
  version: hostile(version),
  may: { update: true, viewInsights: true },
};

interface Showing {
  page: NonNullable<RouteObject["element"]>;
  path?: string;
  at?: string;
  /** At least so many of the hostile words are to be read. */
  read: number;
  then?: () => Promise<void>;
}

const OUTPUT = Object.values(HOSTILE);

const PAGES: Record<string, Showing> = {
  workspaces: { page: <WorkspacesPage />, read: 1 },
  "what a workspace is made of": {
    page: <Resources workspace={whole} />,
    read: 20,
    then: async () => {
      await waitFor(() => expect(FakeSocket.to("/logs")).toBeDefined());
      act(() => {
        FakeSocket.to("/logs")?.says(
          OUTPUT.map((output, id) => ({
            id,
            output,
            level: "info",
            created_at: AT,
            source_id: id % 2 ? "s" : "t",
          })),
        );
      });
    },
  },
  "a workspace's banners": { page: <Banners workspace={whole} />, read: 1 },
  "lines of a log": {
    page: OUTPUT.map((text, id) => (
      <Line
        key={id}
        line={{ id, text, level: "error", at: AT, stage: text }}
        stage
        times
        needle="<"
        current={false}
      />
    )),
    read: 18,
  },
  "a refusal": {
    page: <Failure error={new Error(HOSTILE.image)} title={HOSTILE.script} />,
    read: 2,
  },
  templates: { page: <TemplatesPage />, read: 2 },
  "a template's documentation": { page: <DocsPage />, read: 5 },
  "a template's versions": { page: <VersionsPage />, read: 1 },
  "a template's insights": { page: <InsightsPage />, read: 3 },
  tasks: { page: <TasksPage />, read: 2 },
  users: { page: <UsersPage />, read: 2 },
  groups: { page: <GroupsPage />, read: 1 },
  "a group": { page: <GroupPage />, path: "/groups/:group", at: "/groups/staff", read: 2 },
  "provisioner jobs": {
    page: <JobsPage />,
    path: "/organizations/:organization",
    at: "/organizations/coder",
    read: 2,
  },
  audit: {
    page: <AuditPage />,
    read: 15,
    then: async () => {
      await userEvent.click(await screen.findByRole("button", { name: /^Details of/ }));
    },
  },
  connections: { page: <ConnectionLogPage />, read: 3 },
  inbox: { page: <InboxPage />, read: 20 },
  secrets: { page: <SecretsPage />, read: 3 },
  tokens: { page: <TokensPage />, read: 1 },
  "linked accounts": { page: <ExternalLinksPage />, read: 1 },
  applications: { page: <OAuth2AppsPage />, read: 1 },
  proxies: { page: <ProxiesPage />, read: 3 },
  banners: { page: <Announcements />, read: 8 },
  "the person's menu": {
    page: <UserMenu user={hostile(user) as never} />,
    read: 2,
    then: async () => {
      await userEvent.click(await screen.findByTestId("user-dropdown-trigger"));
    },
  },
  "the palette": { page: <CommandPalette onClose={() => undefined} />, read: 1 },
  parameters: {
    page: (
      <>
        {[
          "input",
          "dropdown",
          "radio",
          "multi-select",
          "tag-select",
          "slider",
          "textarea",
          "checkbox",
          "switch",
          "error",
        ].map((kind) => (
          <ParameterField
            key={kind}
            parameter={hostile(parameter(kind)) as unknown as PreviewParameter}
            value={HOSTILE.image}
            onChange={() => undefined}
          />
        ))}
      </>
    ),
    read: 30,
  },
};

it.each(Object.entries(PAGES))(
  "%s: what is hostile stands there as words, and does nothing",
  async (_, { page, path = "/", at = "/", read, then }) => {
    const seen = visit(
      [
        {
          element: <SignedIn bare />,
          children: [
            { element: <Outlet context={context} />, children: [{ path, element: page }] },
          ],
        },
      ],
      at,
      given,
    );
    await waitFor(() => {
      expect(seen.asked.length).toBeGreaterThan(0);
      expect(seen.fetching()).toBe(0);
    });
    await then?.();
    await waitFor(() => expect(readOf(document)).toBeGreaterThanOrEqual(read));
    expect(harmOf(document)).toEqual([]);
    expect(document.body).not.toHaveTextContent("Unexpected Application Error");
  },
);

it("shows a refusal that is hostile as words", async () => {
  visit(
    [{ element: <SignedIn bare />, children: [{ path: "/", element: <WorkspacesPage /> }] }],
    "/",
    { ...given, "GET /api/v2/workspaces": new Refusal(500, HOSTILE.closed) },
  );
  expect(await screen.findByText(HOSTILE.closed)).toBeVisible();
  expect(harmOf(document)).toEqual([]);
});

it("would be seen to be harmed", () => {
  const frame = document.createElement("div");
  document.body.append(frame);
  for (const bad of [
    "<a href='java\nscript:x'>x</a>",
    "<img src=x onerror=y>",
    "<b>x</b>",
    "<iframe srcdoc=x></iframe>",
    "<a href=' javascript:x'>x</a>",
    "<a href='data:text/html,x'>x</a>",
  ]) {
    frame.innerHTML = bad;
    expect(harmOf(document), bad).not.toEqual([]);
  }
  frame.remove();
  expect(harmOf(document)).toEqual([]);
});
