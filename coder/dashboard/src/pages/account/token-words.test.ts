import { describe, expect, it } from "vitest";

import {
  daysToNs,
  daysUntil,
  isExpired,
  lifetimes,
  scopesText,
  suggestedHours,
} from "./token-words";
import { byGroup, isOn, NEVER_SENT } from "../../features/notification/notification-groups";

const DAY_NS = 86_400e9;

describe("token", () => {
  it.each([
    [400 * DAY_NS, [7, 30, 60, 90, 365]],
    [45 * DAY_NS, [7, 30]],
    [3 * DAY_NS, [3]],
    [0, [7, 30, 60, 90, 365]],
  ])("with maximum %d ns offers lifetimes of %j days", (most, days) => {
    expect(lifetimes(most)).toEqual(days);
  });
  it("lifetime is exact in nanoseconds", () => {
    expect(JSON.stringify(daysToNs(365))).toBe("31536000000000000");
  });
  it("lives to the end of the chosen day", () => {
    expect(daysUntil("2026-01-02", Date.parse("2026-01-01T23:59:59"))).toBeCloseTo(1);
    expect(daysUntil("")).toBeNaN();
  });
  it.each([
    ["2026-01-01T00:00:00Z", true],
    ["2026-01-03T00:00:00Z", false],
  ])("ending %s is expired: %s", (expires_at, expired) => {
    expect(isExpired({ expires_at }, Date.parse("2026-01-02T00:00:00Z"))).toBe(expired);
  });
  it.each([
    [["coder:all"], "All of your permissions"],
    [[], "All of your permissions"],
    [["coder:workspaces.access"], "Use workspaces"],
    [["workspace:read"], "workspace:read"],
    [["workspace:read", "template:read"], "2 permissions"],
  ])("with %j shows %s", (scopes, words) => {
    expect(scopesText(scopes)).toBe(words);
  });
});

describe("kinds of notifications", () => {
  const template = (id: string, group: string, enabled_by_default = true) => ({
    id,
    name: id,
    group,
    enabled_by_default,
    title_template: "",
    body_template: "",
    actions: "",
    method: "",
    kind: "system",
  });
  it("are on by default, or as chosen", () => {
    expect(isOn(template("a", "x"), [])).toBe(true);
    expect(isOn(template("a", "x", false), [])).toBe(false);
    expect(isOn(template("a", "x"), [{ id: "a", disabled: true, updated_at: "" }])).toBe(false);
    expect(isOn(template("a", "x", false), [{ id: "a", disabled: false, updated_at: "" }])).toBe(
      true,
    );
  });
  it("are sorted, without those never sent", () => {
    const all = [
      template("z", "Other Events"),
      template("c", "User Events"),
      template("b", "Workspace Events"),
      template("a", "Workspace Events"),
      ...NEVER_SENT.map((group) => template("n", group)),
    ];
    expect(byGroup(all).map(([name, items]) => [name, items.map((item) => item.id)])).toEqual([
      ["Workspace Events", ["a", "b"]],
      ["User Events", ["c"]],
      ["Other Events", ["z"]],
    ]);
  });
});

it.each([
  [0, 720],
  [168 * 3600e9, 168],
  [8760 * 3600e9, 720],
])("suggests an allowed lifetime: of %d ns, %d h", (max, hours) => {
  expect(suggestedHours(max)).toBe(hours);
});
