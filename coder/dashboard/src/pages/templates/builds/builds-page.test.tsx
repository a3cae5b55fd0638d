import { screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Outlet } from "react-router";
import { expect, it } from "vitest";

import { SignedIn, visit } from "../../../test/world";
import { BuildsPage } from "./BuildsPage";

const build = (name: string, version: string, changes: object = {}) => ({
  workspace_owner_name: "ana",
  workspace_name: name,
  build_number: 3,
  template_version_id: version,
  template_version_name: `name of ${version}`,
  transition: "start",
  created_at: "2026-01-01T00:00:00Z",
  status: "succeeded",
  duration_ms: 5000,
  error: "",
  never_connected: [],
  ...changes,
});
const version = (id: string, active: boolean, changes: object = {}) => ({
  template_version_id: id,
  template_version_name: `name of ${id}`,
  active,
  succeeded: 9,
  failed: 1,
  canceled: 0,
  never_connected: 0,
  stages: [],
  ...changes,
});
const STAGES = [
  { stage: "plan", samples: 9, p50_ms: 2000, p95_ms: 61_000 },
  { stage: "total", samples: 9, p50_ms: 9000, p95_ms: 70_000 },
];
const REPORT = {
  since: "2026-01-01T00:00:00Z",
  builds: 30,
  limited: false,
  versions: [version("v2", true, { stages: STAGES }), version("v1", false, { never_connected: 4 })],
  errors: [
    {
      error: "no capacity",
      count: 7,
      builds: [build("bad", "v1", { status: "failed", error: "no capacity" })],
    },
  ],
  unconnected: [build("dark", "v1", { never_connected: ["main"] })],
  latest: [build("fine", "v2"), build("old", "v1")],
};

const open = (report: object) =>
  visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          {
            element: <Outlet context={{ template: { id: "t", name: "box" } }} />,
            children: [{ path: "/builds", element: <BuildsPage /> }],
          },
        ],
      },
    ],
    "/builds",
    {
      "GET /api/v2/users/me": { id: "me", username: "ana", roles: [], organization_ids: ["o"] },
      "GET /api/v2/templates/t/build-report": report,
    },
  );

it("shows times by stage and builds of the chosen version", async () => {
  const page = open(REPORT);
  const stages = within(await screen.findByRole("table", { name: "Times by stage" }));
  expect(stages.getByRole("row", { name: /Plan/ })).toHaveTextContent("2.0s1m 1s9");
  const versions = within(screen.getByRole("table", { name: "Versions" }));
  expect(versions.getByRole("row", { name: /name of v2/ })).toHaveTextContent(
    "90 % of 109.0s1m 10s0",
  );
  expect(versions.getByRole("row", { name: /name of v1/ })).toHaveTextContent("--4");
  const error = screen.getByText("no capacity", { selector: "li p" });
  expect(error).toHaveTextContent("7×no capacity");
  expect(screen.getByRole("link", { name: "ana/bad #3" })).toHaveAttribute(
    "href",
    "/@ana/bad/builds/3",
  );
  expect(screen.getByRole("link", { name: "ana/dark #3" })).toBeVisible();
  expect(screen.getByText("never connected: main")).toBeVisible();
  expect(screen.getByRole("link", { name: "ana/fine #3" })).toBeVisible();
  expect(screen.queryByRole("link", { name: "ana/old #3" })).toBeNull();
  await userEvent.click(
    screen.getByRole("button", { name: "Show the times and builds of name of v1" }),
  );
  expect(await screen.findByRole("link", { name: "ana/old #3" })).toBeVisible();
  expect(screen.getByText(/no times are known/)).toBeVisible();
  expect(page.at()).toBe("/builds?version=v1");
});

it.each([
  [1, "The failed builds are of workspaces that you may not see."],
  [0, "No build failed."],
])("tells %i failed builds from errors that may not be seen", async (failed, expected) => {
  open({ ...REPORT, versions: [version("v2", true, { failed })], errors: [] });
  expect(await screen.findByText(expected)).toBeVisible();
});

it("says how many builds the figures cover", async () => {
  open({ ...REPORT, builds: 5000, limited: true });
  expect(await screen.findByText("From the latest 5000 builds.")).toBeVisible();
});

it("explains a report without builds", async () => {
  open({ ...REPORT, builds: 0, versions: [], errors: [], unconnected: [], latest: [] });
  expect(await screen.findByText("No builds in the last 30 days")).toBeVisible();
});
