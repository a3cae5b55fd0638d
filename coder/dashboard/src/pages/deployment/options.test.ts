import { describe, expect, it } from "vitest";

import type { DeploymentOption } from "../../api/queries/deployment";
import { grouped, groupPath, isActive, nanoseconds, onPage, shownValue, sourceOf } from "./options";

const http = { name: "x", group: { name: "HTTP", parent: { name: "Networking" } } };

it("names the groups from the outside in", () => expect(groupPath(http)).toBe("Networking / HTTP"));

describe("values", () => {
  it.each([
    [{ name: "a" }, { kind: "secret" }],
    [{ name: "a", value: "" }, { kind: "unset" }],
    [{ name: "a", value: null }, { kind: "unset" }],
    [{ name: "a", value: [] }, { kind: "unset" }],
    [{ name: "a", value: {} }, { kind: "unset" }],
    [
      { name: "a", value: false },
      { kind: "boolean", on: false },
    ],
    [
      { name: "a", value: 0 },
      { kind: "text", text: "0" },
    ],
    [
      { name: "a", value: 3_600_000_000_000, annotations: { format_duration: "true" } },
      { kind: "text", text: "1 hour" },
    ],
    [
      { name: "a", value: { Choices: ["lax", "none"], Value: "lax" } },
      { kind: "text", text: "lax" },
    ],
    [{ name: "a", value: { Choices: [], Value: "" } }, { kind: "unset" }],
    [
      { name: "a", value: ["x", 1] },
      { kind: "list", items: ["x", "1"] },
    ],
    [
      { name: "a", value: { one: "1", two: ["2"] } },
      { kind: "list", items: ["one → 1", 'two → ["2"]'] },
    ],
  ])("%j", (option, result) => expect(shownValue(option)).toEqual(result));
});

it.each([
  [{ name: "a", value: false }, "default"],
  [{ name: "a", value: true, value_source: "flag" }, "flag"],
  [{ name: "a", value: {}, value_source: "default" }, ""],
  [{ name: "a", value: "", value_source: "env" }, "env"],
  [{ name: "a", value: "x" }, ""],
] satisfies [DeploymentOption, string][])("shows source %j as %j", (option, source) =>
  expect(sourceOf(option)).toBe(source),
);

it.each([
  [0, "0 seconds"],
  [1_500_000, "1.5 milliseconds"],
  [90_000_000_000, "1 minute 30 seconds"],
  [86_400_000_000_000, "1 day"],
  [-1_000_000_000, "minus 1 second"],
])("formats %d as %s", (value, text) => {
  expect(nanoseconds(value)).toBe(text);
});

it("assigns options to pages by group", () => {
  expect(onPage(http, "network")).toBe(true);
  expect(onPage(http, "observability")).toBe(false);
  expect(onPage({ name: "y" }, "all")).toBe(true);
  expect(grouped([http, { name: "y" }]).map((item) => item.group)).toEqual([
    "General",
    "Networking / HTTP",
  ]);
});

it.each([
  [{ name: "a", flag: "disable-path-apps", value: false }, false],
  [{ name: "a", flag: "disable-path-apps", value: true }, true],
  [{ name: "a", flag: "tls-enable", value: false }, null],
  [{ name: "a", flag: "disable-x", value: "text" }, null],
  [{ name: "a", value: true }, null],
] satisfies [DeploymentOption, boolean | null][])(
  "%j disables what it names: %j",
  (option, result) => expect(isActive(option)).toBe(result),
);
