import { describe, expect, it } from "vitest";

import type { Permissions } from "../../api/permissions";
import type { AuditLog } from "../../api/types";
import { byDay, changes, linkOf, program, sentence, shown, words, ownerOf } from "./audit";

const user = { username: "ana" } as never;

describe("sentence", () => {
  it.each([
    ["{user} created workspace {target}", "dev", ["ana", " created workspace ", "dev"]],
    ["{user} logged in", "", ["ana", " logged in"]],
    ["unsuccessful attempt", "x", ["unsuccessful attempt"]],
    ["{user} deleted {target}", "{user}", ["ana", " deleted ", "{user}"]],
    [
      "{user} renamed {target}",
      "<img src=x onerror=alert(1)>",
      ["ana", " renamed ", "<img src=x onerror=alert(1)>"],
    ],
  ])("parses %s with %s", (description, resource_target, texts) => {
    expect(sentence({ description, resource_target, user }).map((part) => part.text)).toEqual(
      texts,
    );
  });
  it("names an unknown user", () => {
    expect(
      sentence({ description: "{user} logged in", resource_target: "", user: null })[0],
    ).toEqual({ kind: "user", text: "An unknown user" });
  });
});

describe("changes", () => {
  it("sorts fields and hides secrets", () => {
    expect(
      changes({
        b: { old: "x", new: "y", secret: false },
        a: { old: "1", new: "2", secret: true },
      }),
    ).toEqual([
      { field: "a", before: null, after: null },
      { field: "b", before: "x", after: "y" },
    ]);
  });
  it.each([[null], [undefined], ["text"], [[1]], [{}]])("%j has no diff", (diff) =>
    expect(changes(diff)).toEqual([]),
  );
});

describe("values", () => {
  it.each([
    ["a", "a"],
    [0, "0"],
    [false, "false"],
    ["", ""],
    [null, ""],
    [undefined, ""],
    [["a", "b"], "a, b"],
    [[], ""],
    [[1], "[1]"],
    [{}, ""],
    [{ ana: "use", ben: "admin" }, "ana: use, ben: admin"],
    [{ ana: ["read", "use"] }, "ana: read,use"],
    [{ ana: { deep: 1 } }, '{"ana":{"deep":1}}'],
    [{ Time: "2026-01-01T00:00:00Z", Valid: true }, "2026-01-01T00:00:00Z"],
    [{ Int64: 5, Valid: false }, ""],
  ])("formats %j as %j", (value, text) => expect(shown(value)).toBe(text));
});

it("groups by day in order", () => {
  const days = byDay([
    { time: "2026-03-02T12:00:00Z" },
    { time: "2026-03-02T11:00:00Z" },
    { time: "2026-02-20T12:00:00Z" },
  ]);
  expect(days.map((day) => day.entries.length)).toEqual([2, 1]);
});

it.each([
  ["workspace_build", "Workspace build"],
  ["api_key", "API key"],
  ["user_acl", "User ACL"],
  ["default_ttl_ms", "Default TTL ms"],
  ["idp_sync_settings_group", "IdP sync settings group"],
  ["oauth2_provider_app", "OAuth2 provider app"],
])("describes %s as %s", (name, text) => {
  expect(words(name)).toBe(text);
});

it.each([
  ["coder/v2.34.0", "Coder CLI"],
  ["Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 Chrome/140.0 Safari/537.36", "Chrome"],
  ["", ""],
  ["python-requests/2", "python-requests"],
])("describes %s as %s", (agent, name) => {
  expect(program(agent)).toBe(name);
});

describe("links of audit entries", () => {
  const noPermissions = {} as Permissions;
  const entry = (
    resource_type: AuditLog["resource_type"],
    resource_link: string,
    is_deleted = false,
  ) => ({ resource_type, resource_link, is_deleted });
  it.each([
    ["a template", entry("template", "/templates/x"), noPermissions, "/templates/x"],
    ["another's workspace", entry("workspace", "/@bob/dev"), noPermissions, null],
    ["one's own workspace", entry("workspace", "/@ana/dev"), noPermissions, "/@ana/dev"],
    [
      "a workspace, for who sees all",
      entry("workspace_build", "/@bob/dev/builds/1"),
      { viewAnyWorkspace: true } as Permissions,
      "/@bob/dev/builds/1",
    ],
    ["what is deleted", entry("template", "/templates/x", true), noPermissions, null],
    ["another site", entry("template", "//evil.example"), noPermissions, null],
    ["nothing", entry("api_key", ""), noPermissions, null],
  ])("%s", (_, auditEntry, may, expected) => expect(linkOf(auditEntry, may, "ana")).toBe(expected));
});

it.each([
  ["/@alice/ml", "jane", "alice"],
  ["/@jane/ml", "jane", ""],
  ["/tasks/alice/t1", "jane", "alice"],
  ["/templates/x", "jane", ""],
  ["", "jane", ""],
])("names whom %s, changed by %s, belongs to: %j", (resource_link, username, owner) => {
  expect(ownerOf({ resource_link, user: { username } } as Parameters<typeof ownerOf>[0])).toBe(
    owner,
  );
});
