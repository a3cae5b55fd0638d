import { act, screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { SignedIn } from "../../../test/world";
import { FakeSocket, Refusal, visit, type Answers } from "../../../test/world";
import { CreateWorkspacePage } from "./CreateWorkspacePage";

const AT = "2026-01-01T00:00:00Z";
const value = (text: string) => ({ value: text, valid: true });
const REGION = {
  name: "region",
  display_name: "Region",
  description: "",
  icon: "",
  type: "string",
  form_type: "input",
  mutable: true,
  required: false,
  ephemeral: false,
  order: 0,
  styling: {},
  options: [],
  validations: [],
  diagnostics: [],
  value: value("eu"),
  default_value: value("eu"),
};
const SECRET = {
  ...REGION,
  name: "secret",
  display_name: "Secret",
  styling: { mask_input: true },
  value: value("hush"),
  default_value: value("hush"),
};
const PRESET = {
  ID: "p",
  Name: "Large",
  Default: true,
  Description: "",
  Icon: "",
  DesiredPrebuildInstances: null,
  Parameters: [{ Name: "region", Value: "us" }],
};

async function open(query: string, answers: Answers = {}) {
  const page = visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          { path: "/templates/:template/workspace", Component: CreateWorkspacePage },
          { path: "/:owner/:name", element: "made" },
        ],
      },
    ],
    `/templates/box/workspace${query}`,
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
      "GET /api/v2/users": {
        users: [
          { id: "me", username: "ana", email: "" },
          { id: "ben", username: "ben", email: "" },
        ],
        count: 2,
      },
      "GET /api/v2/organizations/default/templates/box": {
        id: "t",
        name: "box",
        display_name: "Box",
        description: "",
        icon: "",
        organization_id: "o",
        organization_name: "o",
        active_version_id: "v",
        deprecated: false,
        active_user_count: 1,
        build_time_stats: {},
        updated_at: AT,
        created_by_name: "ben",
      },
      "GET /api/v2/templateversions/v": {
        id: "v",
        name: "first",
        job: { id: "j", status: "succeeded" },
      },
      "GET /api/v2/templates/t/versions": [],
      "GET /api/v2/templateversions/v/external-auth": [],
      "GET /api/v2/templateversions/v/presets": [PRESET],
      "POST /api/v2/users/me/workspaces": { owner_name: "ana", name: "new" },
      ...answers,
    },
  );
  await screen.findByLabelText(/^Workspace name/);
  await act(async () =>
    FakeSocket.to("dynamic-parameters")?.says({
      id: 1,
      diagnostics: [],
      parameters: [REGION, SECRET],
    }),
  );
  return page;
}

it("requests nothing that a pending default preset would overwrite", async () => {
  let answer = (_: unknown): void => undefined;
  await open("", {
    "GET /api/v2/templateversions/v/presets": () =>
      new Promise((done) => {
        answer = done;
      }),
  });
  expect(screen.queryByLabelText(/Region/)).toBeNull();
  expect(screen.getByTestId("create")).toBeDisabled();
  await act(async () => answer([PRESET]));
  expect(await screen.findByLabelText(/Region/)).toHaveValue("us");
  expect(screen.getByTestId("create")).toBeEnabled();
});

it("keeps a link's values against presets", async () => {
  const page = await open("?name=new&param.region=asia&disable_params=region");
  expect(await screen.findByLabelText(/Region/)).toHaveValue("asia");
  expect(screen.getByText("Set by the link you opened.")).toBeVisible();
  expect(screen.getByText("Large was not applied: it would change region.")).toBeVisible();
  expect(screen.getByRole("radio", { name: /Large/ })).toBeDisabled();
  await userEvent.click(screen.getByTestId("create"));
  await screen.findByText("made");
  expect(page.sent[0]?.body).toEqual({
    name: "new",
    template_id: "t",
    rich_parameter_values: [
      { name: "region", value: "asia" },
      { name: "secret", value: "hush" },
    ],
  });
});

it("confirms a link's values, hiding secrets", async () => {
  const page = await open("?name=new&mode=auto");
  const dialog = within(await screen.findByRole("dialog", { name: "Create workspace new?" }));
  expect(dialog.getByText("Large")).toBeVisible();
  expect(
    within(dialog.getByRole("list", { name: "Parameters" }))
      .getAllByRole("listitem")
      .map((item) => item.textContent),
  ).toEqual(["region = us", "secret = ••••••"]);
  await userEvent.click(dialog.getByRole("button", { name: "Confirm and create" }));
  await waitFor(() =>
    expect(page.sent[0]?.body).toMatchObject({
      template_version_preset_id: "p",
      rich_parameter_values: [
        { name: "region", value: "us" },
        { name: "secret", value: "hush" },
      ],
    }),
  );
});

it("checks external accounts of the owner", async () => {
  const links = (authenticated: boolean) => [
    {
      id: "gh",
      type: "github",
      display_name: "GitHub",
      display_icon: "",
      authenticate_url: "",
      authenticated,
    },
  ];
  const page = await open("?name=new", {
    "GET /api/v2/templateversions/v/external-auth": (_: unknown, query: URLSearchParams) =>
      links(query.get("user_id") === "me"),
  });
  expect(await screen.findByText("Authenticated")).toBeVisible();
  expect(screen.getByTestId("create")).toBeEnabled();
  await userEvent.click(screen.getByRole("combobox", { name: "Owner" }));
  await userEvent.click(await screen.findByRole("option", { name: /ben/ }));
  expect(await screen.findByText("ben has to log in with GitHub first.")).toBeVisible();
  expect(screen.getByText("Not linked by ben")).toBeVisible();
  expect(screen.queryByRole("button", { name: /Login with/ })).toBeNull();
  expect(screen.getByTestId("create")).toHaveAttribute("aria-disabled", "true");
  expect(page.sent).toEqual([]);
});

it("reports a failure to load presets", async () => {
  await open("", {
    "GET /api/v2/templateversions/v/presets": new Refusal(500, "The database is gone."),
  });
  expect(await screen.findByText("Failed to load the template’s presets")).toBeVisible();
});

it("creates no duplicate without the original's values", async () => {
  visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ path: "/templates/:template/workspace", Component: CreateWorkspacePage }],
      },
    ],
    "/templates/box/workspace?like=b",
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
      "GET /api/v2/organizations/default/templates/box": {
        id: "t",
        name: "box",
        display_name: "Box",
        organization_id: "o",
        organization_name: "o",
        active_version_id: "v",
      },
      "GET /api/v2/workspacebuilds/b/parameters": new Refusal(500, "The database is gone."),
    },
  );
  expect(
    await screen.findByText("Failed to load the parameters of the original workspace"),
  ).toBeVisible();
  expect(screen.queryByTestId("create")).toBeNull();
});
