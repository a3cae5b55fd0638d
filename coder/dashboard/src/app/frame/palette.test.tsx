import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { SignedIn, visit } from "../../test/world";
import { CommandPalette } from "./CommandPalette";

const AGENT = { id: "a", name: "main", parent_id: null, status: "connected" };
const workspace = (name: string, status: string) => ({
  id: name,
  name,
  owner_id: "u",
  owner_name: "ana",
  organization_id: "o",
  template_name: "box",
  template_icon: "",
  latest_build: {
    id: `build of ${name}`,
    status,
    deadline: "2026-01-01T10:00:00Z",
    has_external_agent: false,
    resources: [{ agents: status === "running" ? [AGENT] : [] }],
  },
});
const SETTINGS = {
  theme_preference: "dark",
  theme_mode: "single",
  theme_light: "",
  theme_dark: "",
  terminal_font: "",
};

function open(onHelp = () => undefined) {
  return visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          {
            path: "/",
            element: <CommandPalette onClose={() => undefined} onHelp={onHelp} />,
          },
          { path: "*", element: "elsewhere" },
        ],
      },
    ],
    "/",
    {
      "GET /api/v2/users/me": {
        id: "u",
        username: "ana",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/organizations": [{ id: "o", name: "coder", display_name: "Coder" }],
      "GET /api/v2/templates": [
        { id: "t", name: "docker", display_name: "", organization_id: "o", icon: "" },
      ],
      "GET /api/v2/workspaces": {
        count: 2,
        workspaces: [workspace("api-dev", "running"), workspace("docs", "stopped")],
      },
      "GET /api/v2/users/me/appearance": SETTINGS,
      "PUT /api/v2/users/me/appearance": (body: unknown) => body,
      "POST /api/v2/workspaces/api-dev/builds": {},
      "PUT /api/v2/workspaces/api-dev/extend": {},
    },
  );
}
const type = async (text: string) => {
  await userEvent.click(await screen.findByPlaceholderText(/^Search, or type a command/));
  await userEvent.paste(text); // each typed letter would search again
};

it.each([
  [
    "stop api",
    "Stop ana/api-dev",
    "POST /api/v2/workspaces/api-dev/builds",
    { transition: "stop" },
  ],
  [
    "extend 2h",
    "Extend 2h ana/api-dev",
    "PUT /api/v2/workspaces/api-dev/extend",
    { deadline: "2026-01-01T12:00:00.000Z" },
  ],
] as const)("runs %j", async (text, label, request, body) => {
  const page = open();
  await type(text);
  await userEvent.click(await screen.findByRole("option", { name: label }));
  await waitFor(() => {
    const sent = page.sent.find(({ method, path }) => `${method} ${path}` === request);
    expect(sent?.body).toMatchObject(body);
  });
});

it.each([
  ["new from docker", "docker"],
  ["switch to system", "Switch to system theme"],
  ["audit", "Audit logs"],
  ["deployment users", "Users"],
  ["sign out", "Sign out"],
  ["create user", "Create user"],
  ["new token", "Add token"],
])("finds %j", async (text, label) => {
  open();
  await type(text);
  expect(await screen.findByRole("option", { name: label })).toBeVisible();
});

it.each([
  ["tokens", "Tokens"], // before the form for a new one
  ["attach", "Attach a machine"], // before the list of attached ones
])("finds %j first", async (text, label) => {
  open();
  await type(text);
  await screen.findByRole("option", { name: label });
  expect(screen.getAllByRole("option")[0]).toHaveTextContent(label);
});

it("offers no page beside a command", async () => {
  open();
  await type("stop");
  await screen.findByRole("option", { name: "Stop ana/api-dev" });
  expect(screen.getAllByRole("option")).toHaveLength(1);
});

it("says that no workspace can be stopped", async () => {
  open();
  await type("stop docs");
  expect(await screen.findByText("No workspace matches this command now")).toBeVisible();
});

it("follows the system again with themes for both modes", async () => {
  const page = open();
  await type("switch to system");
  await userEvent.click(await screen.findByRole("option", { name: "Switch to system theme" }));
  await waitFor(() =>
    expect(page.sent.find(({ method }) => method === "PUT")?.body).toMatchObject({
      theme_mode: "sync",
      theme_light: "light",
      theme_dark: "dark",
    }),
  );
});

it("opens the list of shortcuts", async () => {
  const help = vi.fn();
  open(help);
  await type("shortcuts");
  await userEvent.click(await screen.findByRole("option", { name: "Keyboard shortcuts" }));
  expect(help).toHaveBeenCalledOnce();
});
