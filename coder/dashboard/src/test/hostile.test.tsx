// Every page that shows text from users, templates and programs, with hostile text.
import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Outlet, type RouteObject } from "react-router";
import { expect, it } from "vitest";

import type { PreviewParameter, Workspace } from "../api/types";
import { SignedIn } from "./world";
import { Announcements } from "../features/appearance/Announcements";
import { CommandPalette } from "../app/frame/CommandPalette";
import { UserMenu } from "../app/frame/UserMenu";
import { findHarm, hostile, HOSTILE, countHostile } from "./hostile";
import { FakeSocket, Refusal, visit } from "./world";
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
import { FleetPage } from "../pages/workspaces/fleet/FleetPage";
import { HomePage } from "../pages/workspaces/home/HomePage";
import { Resources } from "../pages/workspaces/Resources";
import { WorkspacesPage } from "../pages/workspaces/WorkspacesPage";
import { ANSWERS } from "./hostile-answers";
import { workspace, template, version, AT, user, parameter } from "./hostile-nouns";

const answers = hostile(ANSWERS);
const hostileWorkspace = hostile(workspace) as unknown as Workspace;
const context = {
  template: hostile(template),
  version: hostile(version),
  may: { update: true, viewInsights: true },
};

interface Showing {
  page: NonNullable<RouteObject["element"]>;
  path?: string;
  at?: string;
  /** The minimum number of hostile texts that must be visible. */
  read: number;
  then?: () => Promise<void>;
}

const OUTPUT = Object.values(HOSTILE);

const PAGES: Record<string, Showing> = {
  workspaces: { page: <WorkspacesPage />, read: 1 },
  home: { page: <HomePage />, read: 1 },
  "attached machines": { page: <FleetPage />, read: 1 },
  "what a workspace is made of": {
    page: <Resources workspace={hostileWorkspace} />,
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
  "a workspace's banners": { page: <Banners workspace={hostileWorkspace} />, read: 1 },
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
  "%s: shows hostile text as plain text",
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
      answers,
    );
    await waitFor(() => {
      expect(seen.requests.length).toBeGreaterThan(0);
      expect(seen.fetching()).toBe(0);
    });
    await then?.();
    await waitFor(() => expect(countHostile(document)).toBeGreaterThanOrEqual(read));
    expect(findHarm(document)).toEqual([]);
    expect(document.body).not.toHaveTextContent("Unexpected Application Error");
  },
);

it("shows a hostile error as plain text", async () => {
  visit(
    [{ element: <SignedIn bare />, children: [{ path: "/", element: <WorkspacesPage /> }] }],
    "/",
    { ...answers, "GET /api/v2/workspaces": new Refusal(500, HOSTILE.closed) },
  );
  expect(await screen.findByText(HOSTILE.closed)).toBeVisible();
  expect(findHarm(document)).toEqual([]);
});

it("detects harm", () => {
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
    expect(findHarm(document), bad).not.toEqual([]);
  }
  frame.remove();
  expect(findHarm(document)).toEqual([]);
});
