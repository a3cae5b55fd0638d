import { expect, it } from "vitest";

import type { Workspace } from "../../../api/types";
import { commonErrors, percentile, reportVersions } from "./builds";

const build = (name: string, version: string, changes: object, job: object): Workspace =>
  ({
    id: name,
    name,
    latest_build: {
      template_version_id: version,
      template_version_name: `name of ${version}`,
      transition: "start",
      status: "running",
      created_at: "2026-01-01T00:00:00Z",
      resources: [],
      ...changes,
      job: { status: "succeeded", error: "", ...job },
    },
  }) as unknown as Workspace;
const took = (seconds: number) => ({
  started_at: "2026-01-01T00:00:00Z",
  completed_at: new Date(Date.parse("2026-01-01T00:00:00Z") + seconds * 1000).toISOString(),
});
const ALL = [
  build("a", "v1", {}, took(10)),
  build("b", "v1", { status: "failed" }, { status: "failed", error: "no quota\nmore" }),
  build("c", "v2", { resources: [{ agents: [{ status: "timeout" }] }] }, took(20)),
  build("d", "v2", {}, took(40)),
  build("e", "v2", { status: "starting" }, { status: "running" }),
];

it.each([
  [[], 0.5, null],
  [[7], 0.95, 7],
  [[40, 10, 20, 30], 0.5, 20],
  [[40, 10, 20, 30], 0.95, 40],
])("percentile of %j at %d is %s", (numbers, share, expected) =>
  expect(percentile(numbers, share)).toBe(expected),
);

it("reports each version, the active one first", () => {
  expect(reportVersions(ALL, "v2")).toEqual([
    {
      version: "v2",
      name: "name of v2",
      ended: 2,
      failed: 0,
      p50: 20_000,
      p95: 40_000,
      unconnected: 1,
      active: true,
    },
    {
      version: "v1",
      name: "name of v1",
      ended: 2,
      failed: 1,
      p50: 10_000,
      p95: 10_000,
      unconnected: 0,
      active: false,
    },
  ]);
});

it("groups failed builds by the first line of their error", () => {
  const again = build("f", "v1", { status: "failed" }, { status: "failed", error: "no quota" });
  const other = build("g", "v1", { status: "failed" }, { status: "failed", error: "timeout" });
  expect(
    commonErrors([...ALL, other, again]).map((item) => [item.text, item.workspaces.length]),
  ).toEqual([
    ["no quota", 2],
    ["timeout", 1],
  ]);
});
