// Write requests of pages, and the permission each page checks first. A request that is missing
// from the table has not been reviewed: name its permission, and show the control only to users who
// have it.
import ts from "typescript";
import { describe, expect, it } from "vitest";

const sources = import.meta.glob<string>(
  ["../**/*.{ts,tsx}", "!../**/*.test.{ts,tsx}", "!../test/**"],
  { query: "?raw", import: "default", eager: true },
);
const textOf = (file: string) =>
  sources[`../${file}`] ?? sources[`./${file.replace("api/", "")}`] ?? "";

/**
 * The user's own objects and public requests: any signed-in user may send them, or the page comes
 * before sign-in.
 */
const OWN = "own";
/**
 * File | call | permission | file that checks it, if another one. An indented line continues the
 * one before.
 */
const TABLE = `
app/frame/PaletteActions.tsx | PUT /api/v2/workspaces/:/extend | update
app/frame/PaletteThemes.tsx | PUT /api/v2/users/me/appearance | own
app/frame/SignInAgain.tsx | POST /api/v2/users/login | own
app/frame/sign-out.ts | POST /api/v2/users/logout | own
pages/account/AppearancePage.tsx | PUT /api/v2/users/me/appearance | own
pages/account/AuthorizedAppsPage.tsx | DELETE withQuery("/oauth2/tokens", { client_id: revoking.id }) | own
pages/account/ExternalLinksPage.tsx | DELETE /api/v2/external-auth/: | own
pages/account/NewTokenPage.tsx | POST /api/v2/users/me/keys/tokens | own
pages/account/NotificationsPage.tsx | PUT /api/v2/users/:/notifications/preferences | own
pages/account/ProfilePage.tsx | PUT /api/v2/users/me/profile | own
pages/account/QuietHoursPage.tsx | PUT path | own
pages/account/SecretsPage.tsx | DELETE /api/v2/users/:/secrets/: | own
pages/account/SecretsPage.tsx | PATCH own | own
pages/account/SecretsPage.tsx | POST path | own
pages/account/SecurityPage.tsx | PUT /api/v2/users/:/password | own
pages/account/SecurityPage.tsx | POST /api/v2/users/me/convert-login | own
features/person/Sessions.tsx | DELETE /api/v2/users/:/keys/: | endAnySession | pages/people/user-columns.tsx
pages/account/SshKeysPage.tsx | PUT /api/v2/users/me/gitsshkey | own
pages/account/TokensPage.tsx | DELETE /api/v2/users/:/keys/: | own
pages/account/devices/AddDevice.tsx | POST /api/v2/users/:/wireguard-clients | own
pages/account/devices/DevicesPage.tsx | DELETE /api/v2/users/:/wireguard-clients/: | own
pages/workspaces/create/CreateForm.tsx | POST /api/v2/users/:/workspaces | mayCreate | pages/workspaces/create/CreateWorkspacePage.tsx
pages/deployment/appearance.ts | PUT APPEARANCE | editDeploymentConfig | pages/deployment/AppearancePage.tsx
pages/deployment/NotificationsPage.tsx | POST /api/v2/notifications/test | editDeploymentConfig
pages/deployment/NotificationsPage.tsx | PUT /api/v2/notifications/settings | editDeploymentConfig
pages/deployment/NotificationsPage.tsx | PUT /api/v2/notifications/templates/:/method | editDeploymentConfig
pages/deployment/OAuth2AppPage.tsx | PUT /api/v2/oauth2-provider/apps/: | editOAuth2Apps
pages/deployment/OAuth2AppPage.tsx | DELETE /api/v2/oauth2-provider/apps/: | editOAuth2Apps
pages/deployment/OAuth2AppPage.tsx | POST /api/v2/oauth2-provider/apps/:/secrets | editOAuth2Apps
pages/deployment/OAuth2AppPage.tsx | DELETE /api/v2/oauth2-provider/apps/:/secrets/: | editOAuth2Apps
pages/deployment/OAuth2AppsPage.tsx | PUT /api/v2/oauth2-provider/settings | editOAuth2Apps
pages/deployment/OAuth2AppsPage.tsx | POST /api/v2/oauth2-provider/apps | editOAuth2Apps
pages/deployment/OrganizationSyncPage.tsx | PATCH SETTINGS | editOrganizationIdpSync
features/workspace/preview/preview.ts | POST path | update | pages/workspaces/WorkspaceActions.tsx
features/workspace/preview/preview.ts | DELETE :/: | update | pages/workspaces/WorkspaceActions.tsx
pages/groups/CreateGroupPage.tsx | POST /api/v2/organizations/:/groups | createGroups
pages/groups/GroupPage.tsx | PATCH /api/v2/groups/: | updateGroups
pages/groups/GroupPage.tsx | DELETE /api/v2/groups/: | deleteGroups
pages/health/SectionPage.tsx | PUT /api/v2/debug/health/settings | editDeploymentConfig
features/notification/inbox.ts | PUT /api/v2/notifications/inbox/:/read-status | own
features/notification/inbox.ts | PUT /api/v2/notifications/inbox/mark-all-as-read | own
pages/organizations/CreateOrganizationPage.tsx | POST /api/v2/organizations | createOrganization
pages/organizations/IdpSyncPage.tsx | PATCH pathOf(view, kind) | editSync
pages/organizations/MembersPage.tsx | POST /api/v2/organizations/:/members/: | addMembers
pages/organizations/MembersPage.tsx | DELETE /api/v2/organizations/:/members/: | removeMembers
pages/organizations/MembersPage.tsx | PUT /api/v2/organizations/:/members/:/roles | assignRoles
pages/organizations/RoleEditorPage.tsx | POST (create ? post : put) | createRoles
pages/organizations/RoleEditorPage.tsx | PUT (create ? post : put) | updateRoles
pages/organizations/RolesPage.tsx | DELETE /api/v2/organizations/:/members/roles/: | deleteRoles
pages/organizations/SettingsPage.tsx | PATCH /api/v2/organizations/: | update
pages/organizations/SettingsPage.tsx | DELETE /api/v2/organizations/: | remove
pages/organizations/SettingsPage.tsx | PATCH /api/v2/organizations/:/settings/workspace-sharing | update
pages/people/CreateUserPage.tsx | POST /api/v2/users | createUser
pages/people/CreateUserPage.tsx | PUT /api/v2/users/:/roles | updateUsers
pages/people/access/access.ts | DELETE :/keys/: | endAnySession | pages/people/access/AccessPage.tsx
pages/people/access/access.ts | PUT :/status/suspend | updateUsers | pages/people/access/AccessPage.tsx
pages/people/access/access.ts | DELETE :/wireguard-clients/: | endAnySession | pages/people/access/AccessPage.tsx
pages/people/access/access.ts | PUT :/roles | updateUsers | pages/people/access/AccessPage.tsx
pages/people/UserDialogs.tsx | PUT /api/v2/users/:/profile | updateUsers | pages/people/user-columns.tsx
pages/people/UserDialogs.tsx | PUT /api/v2/users/:/password | updateUsers | pages/people/user-columns.tsx
pages/people/UserDialogs.tsx | PUT /api/v2/users/:/status/: | updateUsers | pages/people/user-columns.tsx
pages/people/UserDialogs.tsx | DELETE /api/v2/users/: | deleteUser | pages/people/user-columns.tsx
pages/people/user-columns.tsx | PUT /api/v2/users/:/roles | updateUsers
pages/provisioners/JobReasons.tsx | PUT /api/v2/organizations/:/provisionerjobs/:/parked | viewJobs | pages/provisioners/JobsPage.tsx
pages/provisioners/JobsPage.tsx | PATCH path | viewJobs
pages/provisioners/KeysPage.tsx | DELETE /api/v2/organizations/:/provisionerkeys/: | deleteKeys
pages/provisioners/KeysPage.tsx | POST /api/v2/organizations/:/provisionerkeys | createKeys
pages/proxies/ProxiesPage.tsx | DELETE /api/v2/workspaceproxies/: | editWorkspaceProxies
pages/proxies/CreateProxy.tsx | POST /api/v2/workspaceproxies | editWorkspaceProxies | pages/proxies/ProxiesPage.tsx
pages/signin/ChangePasswordPage.tsx | POST /api/v2/users/otp/change-password | own
pages/signin/CliAuthPage.tsx | POST /api/v2/users/me/keys | own
pages/signin/ExternalAuthPage.tsx | POST :/device | own
pages/signin/LoginPage.tsx | POST /api/v2/users/login | own
pages/signin/ResetPasswordPage.tsx | POST /api/v2/users/otp/request | own
pages/signin/SetupPage.tsx | POST /api/v2/users/first | own
pages/signin/SetupPage.tsx | POST /api/v2/users/login | own
pages/tasks/NewTask.tsx | POST /api/v2/tasks/me | making | pages/tasks/TasksPage.tsx
pages/tasks/TaskChat.tsx | POST :/send | update
pages/tasks/TaskChat.tsx | PATCH :/input | update
pages/tasks/TaskPage.tsx | POST :/: | update
pages/tasks/TaskPage.tsx | DELETE taskPath(owner, name) | remove
pages/tasks/TasksPage.tsx | DELETE taskPath(deleting.owner_name, deleting.id) | remove
pages/templates/editor/Editor.tsx | PATCH /api/v2/templateversions/:/cancel | update | pages/templates/EditorPage.tsx
pages/templates/editor/PublishDialog.tsx | PATCH /api/v2/templateversions/: | update | pages/templates/EditorPage.tsx
pages/templates/editor/PublishDialog.tsx | PATCH /api/v2/templates/:/versions | update | pages/templates/EditorPage.tsx
pages/templates/editor/test-run.ts | POST /api/v2/users/me/workspaces | mayCreate | pages/templates/editor/Editor.tsx
pages/templates/editor/test-run.ts | POST /api/v2/workspaces/:/builds | mayCreate | pages/templates/editor/Editor.tsx
pages/templates/editor/test-run.ts | PATCH /api/v2/workspacebuilds/:/cancel | mayCreate | pages/templates/editor/Editor.tsx
pages/templates/new/UploadBox.tsx | UPLOAD /api/v2/files | createAnyTemplate | pages/templates/NewTemplatePage.tsx
pages/templates/builder/composition.ts | POST /api/v2/templatebuilder/compose | createAnyTemplate
  | pages/templates/builder/BuilderPage.tsx
pages/templates/new/CreateForm.tsx | POST /api/v2/organizations/:/templates | createAnyTemplate
  | pages/templates/NewTemplatePage.tsx
pages/templates/new/CreateForm.tsx | PATCH /api/v2/templateversions/:/cancel | createAnyTemplate
  | pages/templates/NewTemplatePage.tsx
pages/templates/PrebuildsPage.tsx | POST /api/v2/templates/:/prebuilds/invalidate | update
pages/templates/TemplateLayout.tsx | DELETE /api/v2/templates/: | remove
pages/templates/VersionPage.tsx | PATCH /api/v2/templateversions/:/cancel | update
pages/templates/VersionsPage.tsx | POST /api/v2/templateversions/:/: | update
pages/templates/VersionsPage.tsx | PATCH /api/v2/templates/:/versions | update
pages/templates/archive.ts | UPLOAD /api/v2/files | update | pages/templates/EditorPage.tsx
pages/templates/archive.ts | POST /api/v2/organizations/:/templateversions | createAnyTemplate | pages/templates/NewTemplatePage.tsx
pages/templates/rollout/RolloutCard.tsx | PATCH /api/v2/templates/:/rollouts | update | pages/templates/VersionsPage.tsx
pages/templates/rollout/StartRollout.tsx | POST /api/v2/templates/:/rollouts | update | pages/templates/VersionsPage.tsx
pages/templates/settings/BuildTokens.tsx | PUT /api/v2/templates/:/build-tokens | update | pages/templates/settings/SettingsLayout.tsx
pages/templates/settings/PermissionsPage.tsx | PATCH /api/v2/templates/:/acl | update | pages/templates/settings/SettingsLayout.tsx
pages/templates/settings/VariablesPage.tsx | PATCH /api/v2/templates/:/versions | update | pages/templates/settings/SettingsLayout.tsx
pages/templates/settings/save.ts | PATCH /api/v2/templates/: | update | pages/templates/settings/SettingsLayout.tsx
pages/terminal/stream-address.ts | POST /api/v2/applications/reconnecting-pty-signed-token | mayConnect
  | pages/workspaces/agent/AgentCard.tsx
pages/workspaces/Banners.tsx | PUT /api/v2/workspaces/:/dormant | update
pages/workspaces/ScheduleControl.tsx | PUT /api/v2/workspaces/:/extend | update | pages/workspaces/WorkspacePage.tsx
pages/workspaces/MoreMenu.tsx | PUT /api/v2/workspaces/:/favorite | own
pages/workspaces/MoreMenu.tsx | DELETE /api/v2/workspaces/:/favorite | own
pages/workspaces/agent/Containers.tsx | POST :/recreate | mayConnect
pages/workspaces/agent/Containers.tsx | DELETE path(deleting) | mayConnect
pages/workspaces/agent/DesktopLinks.tsx | POST /api/v2/users/me/keys | own
pages/workspaces/connection/speed.ts | UPLOAD :/payload | mayConnect | pages/workspaces/connection/ConnectionPage.tsx
pages/workspaces/connection/speed.ts | POST path | mayConnect | pages/workspaces/connection/ConnectionPage.tsx
pages/workspaces/fleet/Bulk.tsx | POST :/rotate-token | update
pages/workspaces/fleet/upgrade.ts | POST :/upgrade | update | pages/workspaces/fleet/Bulk.tsx
pages/workspaces/agent/ExternalPanel.tsx | POST /api/v2/workspaces/:/external-agent/:/rotate-token | update
  | pages/workspaces/agent/AgentCard.tsx
pages/workspaces/agent/port-sharing.ts | POST /api/v2/workspaces/:/port-share | mayShare | pages/workspaces/agent/Ports.tsx
pages/workspaces/agent/SharedPort.tsx | DELETE /api/v2/workspaces/:/port-share | mayShare | pages/workspaces/agent/Ports.tsx
pages/workspaces/agent/app-open.ts | POST /api/v2/users/me/keys | own
pages/workspaces/builds/builds.ts | POST /api/v2/workspaces/:/builds | start | pages/workspaces/WorkspaceActions.tsx
pages/workspaces/builds/builds.ts | PATCH /api/v2/workspacebuilds/:/cancel | update | pages/workspaces/builds/CancelBuild.tsx
pages/workspaces/settings/GeneralPage.tsx | PATCH /api/v2/workspaces/: | update | pages/workspaces/settings/SettingsLayout.tsx
pages/workspaces/settings/GeneralPage.tsx | PUT /api/v2/workspaces/:/autoupdates | update | pages/workspaces/settings/SettingsLayout.tsx
pages/workspaces/settings/SchedulePage.tsx | PUT /api/v2/workspaces/:/autostart | update | pages/workspaces/settings/SettingsLayout.tsx
pages/workspaces/settings/SchedulePage.tsx | PUT /api/v2/workspaces/:/ttl | update | pages/workspaces/settings/SettingsLayout.tsx
pages/workspaces/settings/SharingPage.tsx | PATCH /api/v2/workspaces/:/acl | share | pages/workspaces/settings/SettingsLayout.tsx
pages/workspaces/RowActions.tsx | DELETE /api/v2/workspaces/:/favorite | own
pages/workspaces/RowActions.tsx | PUT /api/v2/workspaces/:/favorite | own
`;

/**
 * Functions that start a build, whose permission depends on the build: each call site, and the
 * permissions it checks.
 */
const BUILDS: Readonly<Record<string, readonly string[]>> = {
  "app/frame/PaletteActions.tsx": ["start", "stop"],
  "pages/workspaces/WorkspaceActions.tsx": ["start", "stop"],
  "pages/workspaces/home/WorkspaceCard.tsx": ["start"],
  "pages/workspaces/Banners.tsx": ["mayBuild"],
  "pages/workspaces/DeleteWorkspace.tsx": ["remove"],
  "pages/workspaces/builds/ChangeVersion.tsx": ["start"],
  "pages/workspaces/settings/ParametersPage.tsx": ["update"],
  "pages/workspaces/BatchBar.tsx": ["start", "stop", "remove"],
  "pages/workspaces/RowActions.tsx": ["start", "stop", "remove"],
};
/** Those that another component opens, which does the check. */
const ASKED_BY: Readonly<Record<string, string>> = {
  "pages/workspaces/DeleteWorkspace.tsx": "pages/workspaces/MoreMenu.tsx",
  "pages/workspaces/builds/ChangeVersion.tsx": "pages/workspaces/MoreMenu.tsx",
  "pages/workspaces/settings/ParametersPage.tsx": "pages/workspaces/settings/SettingsLayout.tsx",
};

const rows = TABLE.trim()
  .replace(/\n +/g, " ")
  .split("\n")
  .map((line) => {
    const [file = "", call = "", right = "", checker = file] = line.split(" | ");
    return { file, call, right, asker: checker };
  });

const VERBS: Readonly<Record<string, string>> = {
  post: "POST",
  put: "PUT",
  patch: "PATCH",
  remove: "DELETE",
  removeIfPresent: "DELETE",
  upload: "UPLOAD",
  postForBytes: "POST",
};

function pathOf(argument: ts.Expression | undefined): string {
  if (argument && ts.isStringLiteralLike(argument)) return argument.text;
  if (argument && ts.isTemplateExpression(argument))
    return (
      argument.head.text + argument.templateSpans.map((span) => `:${span.literal.text}`).join("")
    );
  return argument?.getText() ?? "";
}

/** Every use of the client's writing functions: [verb and path]. */
function callsOf(file: string, text: string): string[] {
  const tree = ts.createSourceFile(
    file,
    text,
    ts.ScriptTarget.Latest,
    true,
    file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS,
  );
  const imports = new Map<string, string>();
  const matches: string[] = [];
  const visitNode = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      const named = node.importClause?.namedBindings;
      if (/\/client"$/.test(node.moduleSpecifier.getText()) && named && ts.isNamedImports(named)) {
        for (const { name, propertyName } of named.elements)
          imports.set(name.text, (propertyName ?? name).text);
      }
      return;
    }
    if (
      ts.isIdentifier(node) &&
      !ts.isPropertyAccessExpression(node.parent) &&
      VERBS[imports.get(node.text) ?? ""]
    ) {
      const verb = VERBS[imports.get(node.text) ?? ""];
      const around = node.parent;
      if (ts.isCallExpression(around) && around.expression === node)
        matches.push(`${verb} ${pathOf(around.arguments[0])}`);
      else if (!ts.isPropertyAssignment(around) && !ts.isJsxAttribute(around))
        matches.push(`${verb} ${around.parent.getText()}`);
    }
    node.forEachChild(visitNode);
  };
  visitNode(tree);
  return matches.filter((call) => call !== "POST /api/v2/authcheck");
}

const calls = Object.entries(sources).map(
  ([file, text]) => [file.replace(/^\.\.\//, "").replace(/^\.\//, "api/"), text] as const,
);
const actual = new Set(
  calls.flatMap(([file, text]) => callsOf(file, text).map((call) => `${file} | ${call}`)),
);

describe("write requests of pages", () => {
  it("are exactly those in the table", () => {
    expect([...actual].sort()).toEqual(rows.map(({ file, call }) => `${file} | ${call}`).sort());
  });

  it.each(rows.filter(({ right }) => right !== OWN))(
    "$file checks $right before $call",
    ({ right, asker: checker }) => {
      expect(textOf(checker)).toMatch(new RegExp(`\\b${right}\\b`));
      expect(textOf(checker)).toMatch(/\bmay\w*\b/);
    },
  );

  it("start builds only in known files", () => {
    const begin = calls
      .filter(
        ([file, text]) =>
          /\b(?:startBuild|startWorkspace|updateToActive|stopThenStart)\(/.test(text) &&
          !file.endsWith("builds/builds.ts"),
      )
      .map(([file]) => file);
    expect(begin.sort()).toEqual(Object.keys(BUILDS).sort());
  });

  it.each(Object.entries(BUILDS))("%s checks %j", (file, rights) => {
    const checker = textOf(ASKED_BY[file] ?? file);
    for (const right of rights)
      expect(checker).toMatch(
        new RegExp(
          `(?:may|rights)\\b.*\\b${right}\\b|\\b${right}\\b.*\\bmay\\b|right: "${right}"|"${right}"`,
        ),
      );
  });
});
