// A version may require values that a workspace lacks. Wherever a build is started, such a
// rejection leads to the parameters page for the version of the build. A start uses the version
// that the template allows.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useLocation, type RouteObject } from "react-router";
import { expect, it } from "vitest";

import type { Workspace } from "../../../api/types";
import { SignedIn } from "../../../test/world";
import { Refusal, visit, type Answers } from "../../../test/world";
import { Toasts } from "../../../ui/toast";
import { WorkspacesPage } from "../WorkspacesPage";
import { Banners } from "../Banners";
import { WorkspaceActions } from "../WorkspaceActions";

const AT = "2026-01-01T00:00:00Z";
const workspace = (status: string, more: object = {}, error = "") =>
  ({
    id: "w",
    name: "lab",
    owner_id: "me",
    owner_name: "ana",
    organization_id: "o",
    organization_name: "org",
    template_id: "t",
    template_name: "box",
    template_display_name: "Box",
    template_icon: "",
    template_active_version_id: "v2",
    template_require_active_version: false,
    outdated: true,
    health: { healthy: true },
    created_at: AT,
    last_used_at: AT,
    latest_build: {
      id: "b",
      status,
      transition: "start",
      created_at: AT,
      resources: [],
      template_version_id: "v1",
      job: { id: "j", status: error ? "failed" : "succeeded", error },
    },
    ...more,
  }) as unknown as Workspace;
const REQUIRED = { template_require_active_version: true };
const versions = ["v1", "v2"].map((id) => ({
  id,
  name: `${id}-name`,
  message: "",
  created_at: AT,
  created_by: { username: "ben" },
  job: { status: "succeeded" },
}));

type Step = string | readonly [role: string, name: string | RegExp];
const press = async (steps: readonly Step[]) => {
  for (const step of steps)
    await userEvent.click(
      await (typeof step === "string"
        ? screen.findByRole("button", { name: step })
        : screen.findByRole(step[0], { name: step[1] })),
    );
};
const actions = (of: Workspace) => <WorkspaceActions workspace={of} />;
const banners = (of: Workspace) => <Banners workspace={of} />;

interface Scenario {
  of: Workspace;
  shown: ((of: Workspace) => RouteObject["element"]) | null;
  press: readonly Step[];
  version: string;
}
const SCENARIOS: Record<string, Scenario> = {
  Start: { of: workspace("stopped"), shown: actions, press: ["Start"], version: "v1" },
  "Start, where only the active version may run": {
    of: workspace("stopped", REQUIRED),
    shown: actions,
    press: ["Start"],
    version: "v2",
  },
  Update: { of: workspace("stopped"), shown: actions, press: ["Update…", "Update"], version: "v2" },
  "Change version": {
    of: workspace("stopped"),
    shown: actions,
    press: [
      "Workspace actions",
      ["menuitem", "Change version…"],
      ["combobox", "Version"],
      ["option", /v2-name/],
      "Promote version",
    ],
    version: "v2",
  },
  "Restart, where only the active version may run": {
    of: workspace("running", REQUIRED),
    shown: actions,
    press: ["Restart", ["button", "Restart"]],
    version: "v2",
  },
  Retry: {
    of: workspace("failed", {}, "exit status 1"),
    shown: banners,
    press: ["Retry"],
    version: "v1",
  },
  "Retry, where only the active version may run": {
    of: workspace("failed", REQUIRED, "exit status 1"),
    shown: banners,
    press: ["Retry"],
    version: "v2",
  },
  "Start, in the list": {
    of: workspace("stopped"),
    shown: null,
    press: ["Actions for lab", ["menuitem", "Start"]],
    version: "v1",
  },
  "Start, in the list, where only the active version may run": {
    of: workspace("stopped", REQUIRED),
    shown: null,
    press: ["Actions for lab", ["menuitem", "Start"]],
    version: "v2",
  },
  "Update, of several": {
    of: workspace("stopped"),
    shown: null,
    press: [
      ["checkbox", "Select lab"],
      "Update…",
      "Update 1",
      ["link", "Set parameters of ana/lab"],
    ],
    version: "v2",
  },
  "Start, of several": {
    of: workspace("stopped", REQUIRED),
    shown: null,
    press: [["checkbox", "Select lab"], "Start…", "Start 1", ["link", "Set parameters of ana/lab"]],
    version: "v2",
  },
};

function CurrentAddress() {
  const { pathname, search } = useLocation();
  return <p>{`at ${pathname}${search}`}</p>;
}

function open({ of, shown }: Scenario, refusal: Refusal, answers: Answers = {}) {
  return visit(
    [
      {
        element: (
          <>
            <SignedIn bare />
            <Toasts />
          </>
        ),
        children: [
          shown ? { path: "/", element: shown(of) } : { path: "/", Component: WorkspacesPage },
          { path: "*", Component: CurrentAddress },
        ],
      },
    ],
    "/",
    {
      "GET /api/v2/users/me": {
        id: "me",
        username: "ana",
        name: "",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/organizations": [],
      "GET /api/v2/templates": [],
      "GET /api/v2/templates/t": {},
      "GET /api/v2/regions": { regions: [] },
      "GET /api/v2/applications/host": { host: "" },
      "GET /api/v2/workspaces": { workspaces: [of], count: 1 },
      "GET /api/v2/workspaces/w": of,
      "GET /api/v2/workspacebuilds/b/parameters": [],
      "GET /api/v2/templates/t/versions": versions,
      "GET /api/v2/templateversions/v2": versions[1],
      "POST /api/v2/workspaces/w/builds": ({ transition }: { transition: string }) =>
        transition === "stop" ? {} : refusal,
      ...answers,
    },
  );
}
const scenarios = Object.entries(SCENARIOS).map(([what, way]) => ({ what, ...way }));

it.each(scenarios)("$what: opens the parameters page for missing values", async (way) => {
  const page = open(
    way,
    new Refusal(400, "Unable to validate parameters", [
      { field: "disk", detail: "Required parameter not provided" },
    ]),
  );
  await press(way.press);
  expect(
    await screen.findByText(`at /@ana/lab/settings/parameters?templateVersionId=${way.version}`),
  ).toBeVisible();
  expect(
    (page.sent.at(-1)?.body as { template_version_id?: string }).template_version_id ?? "v1",
  ).toBe(way.version);
});

it.each(scenarios.filter(({ press: steps }) => !steps.some((step) => step[0] === "link")))(
  "$what: shows any other rejection in place",
  async (way) => {
    const page = open(way, new Refusal(400, "The version was never imported."));
    await press(way.press);
    expect((await screen.findAllByText(/The version was never imported/))[0]).toBeVisible();
    await waitFor(() => expect(page.fetching()).toBe(0));
    expect(page.at()).toBe("/");
  },
);

it.each([
  { what: "Start", of: workspace("stopped"), buttons: ["Start"] },
  { what: "Restart", of: workspace("running"), buttons: ["Restart"] },
  { what: "Update", of: workspace("stopped"), buttons: ["Update…", "Update"] },
])("$what: does not go on without the template's parameters", async ({ of, buttons }) => {
  const busy = new Refusal(500, "Database is busy.");
  const page = open(
    { of, shown: actions, press: buttons, version: "" },
    new Refusal(400, "Not reached."),
    {
      "GET /api/v2/templateversions/v1/rich-parameters": busy,
      "GET /api/v2/templateversions/v2/rich-parameters": busy,
    },
  );
  await press(buttons);
  await waitFor(() => expect(screen.getByText("Database is busy.")).toBeVisible());
  expect(page.sent).toEqual([]);
});
