import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { User } from "../../../api/types";
import { Refusal, SignedIn, visit, type Answers } from "../../../test/world";
import { groupOrigin, permissionsOf, revocation, roleOrigin } from "./access";
import { AccessPage } from "./AccessPage";

const BOB = {
  id: "b",
  username: "bob",
  name: "",
  email: "bob@example.com",
  status: "active",
  login_type: "oidc",
  roles: [{ name: "auditor", display_name: "Auditor" }],
  organization_ids: ["o"],
  last_seen_at: "2026-01-01T00:00:00Z",
} as unknown as User;

describe("origin", () => {
  it.each([
    ["password", "Assigned by hand"],
    ["oidc", "Assigned by hand or by the identity provider"],
  ] as const)("of a role with %s", (login_type, expected) =>
    expect(roleOrigin({ login_type })).toBe(expected),
  );
  it.each([
    ["o", "user", "Every member of the organization"],
    ["g", "oidc", "Identity provider"],
    ["g", "user", "Added by hand"],
  ] as const)("of group %s from %s", (id, source, expected) =>
    expect(groupOrigin({ id, source, organization_id: "o" })).toBe(expected),
  );
});

it.each([
  [["coder:all"], "all permissions of the user"],
  [[], "all permissions of the user"],
  [["workspace:read", "user:read"], "workspace:read, user:read"],
] as const)("names the permissions of a token with %j", (scopes, expected) =>
  expect(permissionsOf({ scope: "all", scopes: [...scopes] })).toBe(expected),
);

it("leaves out steps without an effect", () => {
  const gone = { ...BOB, status: "suspended", roles: [] } as User;
  const none = { items: [], problem: "", load: () => Promise.resolve([]) };
  expect(revocation(gone, { tokens: none, sessions: none, devices: none })).toEqual({
    steps: [],
    hidden: [],
  });
});

const ANSWERS: Answers = {
  "GET /api/v2/users/me": { id: "me", username: "ana", roles: [], organization_ids: ["o"] },
  "GET /api/v2/users/bob": BOB,
  "GET /api/v2/users/b/organizations": [{ id: "o", name: "crew", display_name: "Crew" }],
  "GET /api/v2/organizations/o/members/b": { roles: [] },
  "GET /api/v2/groups": [],
  "GET /api/v2/workspaces": { workspaces: [], count: 0 },
  "GET /api/v2/experiments": ["oauth2"],
  "GET /api/v2/users/b/keys/tokens": [
    { id: "t", user_id: "b", token_name: "robot", scopes: ["coder:all"], last_used: "" },
  ],
  "GET /api/v2/users/b/sessions": [{ id: "s", user_agent: "", ip_address: "192.0.2.1" }],
  "GET /api/v2/users/b/wireguard-clients": new Refusal(403, "Forbidden."),
  "GET /api/v2/oauth2-provider/apps": [
    { id: "a", name: "Portal", callback_url: "https://p", last_used: "2020-01-01T00:00:00Z" },
    { id: "c", name: "Robot", callback_url: "https://r" },
  ],
  "PUT /api/v2/users/b/status/suspend": {},
  "DELETE /api/v2/users/b/keys/s": {},
  "DELETE /api/v2/users/b/keys/t": {},
  "PUT /api/v2/users/b/roles": {},
};

const opened = (answers: Answers = {}) =>
  visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ path: "/:user/access", element: <AccessPage /> }],
      },
    ],
    "/bob/access",
    { ...ANSWERS, ...answers },
  );

it("requests no part that the viewer may not see", async () => {
  const page = opened({
    "POST /api/v2/authcheck": (body: { checks: Record<string, unknown> }) =>
      Object.fromEntries(
        Object.keys(body.checks).map((name) => [name, name !== "keys" && name !== "consents"]),
      ),
  });
  expect(await screen.findAllByText("Not shown: you need permission to view them.")).toHaveLength(
    4,
  );
  expect(
    page.requests.filter((request) => /keys|sessions|wireguard|oauth2-provider/.test(request)),
  ).toEqual([]);
});

it("requests no consents where applications are off", async () => {
  const page = opened({ "GET /api/v2/experiments": [] });
  expect(await screen.findByText(/does not let other applications sign in/)).toBeVisible();
  expect(page.requests).not.toContain("GET /api/v2/oauth2-provider/apps");
});

it("lists the steps, then revokes in that order", async () => {
  const page = opened();
  expect(await screen.findByText("robot")).toBeVisible();
  expect(await screen.findByText("Not shown: Forbidden.")).toBeVisible();
  expect(await screen.findByText("Portal")).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Revoke everything…" }));
  const steps = within(await screen.findByRole("list", { name: "Steps" })).getAllByRole("listitem");
  expect(steps.map((step) => step.textContent.split(":")[0])).toEqual([
    "Suspend bob",
    "End 1 session",
    "Delete 1 token",
    "Remove all devices",
    "Remove the site role Auditor",
  ]);
  expect(page.sent).toEqual([]);
  await userEvent.type(screen.getByLabelText(/Name of the user/), "bob");
  await userEvent.click(screen.getByTestId("confirm-button"));
  await waitFor(() =>
    expect(page.sent.map((request) => `${request.method} ${request.path}`)).toEqual([
      "PUT /api/v2/users/b/status/suspend",
      "DELETE /api/v2/users/b/keys/s",
      "DELETE /api/v2/users/b/keys/t",
      "PUT /api/v2/users/b/roles",
    ]),
  );
});

const opensDialog = async () => {
  const button = await screen.findByRole("button", { name: "Revoke everything…" });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
  await screen.findByText(/Organizations, groups, shares and workspaces are kept/);
};
const confirms = async () => {
  const name = screen.getByLabelText(/Name of the user/);
  await userEvent.clear(name);
  await userEvent.type(name, "bob");
  await userEvent.click(screen.getByTestId("confirm-button"));
};
const deletions = (page: ReturnType<typeof opened>) =>
  page.sent.filter((request) => request.method === "DELETE").map((request) => request.path);

it("loads a list again that did not load before", async () => {
  let asked = 0;
  const page = opened({
    "GET /api/v2/users/b/wireguard-clients": () =>
      asked++ === 0 ? new Refusal(500, "Busy.") : [{ id: "d", name: "phone" }],
    "DELETE /api/v2/users/b/wireguard-clients/d": {},
  });
  await opensDialog();
  expect(screen.getByText(/Remove all devices: the list did not load \(Busy\.\)/)).toBeVisible();
  await confirms();
  await waitFor(() => expect(deletions(page)).toContain("/api/v2/users/b/wireguard-clients/d"));
});

it("names what was not revoked, and repeats it", async () => {
  let refused = true;
  const page = opened({
    "GET /api/v2/users/b/wireguard-clients": [],
    "DELETE /api/v2/users/b/keys/s": new Refusal(404, "Not found."),
    "DELETE /api/v2/users/b/keys/t": () => (refused ? new Refusal(500, "Busy.") : {}),
  });
  await opensDialog();
  await confirms();
  expect(
    await screen.findByText(/^Not revoked: token robot \(Busy\.\)\. The rest is done/),
  ).toBeVisible();
  expect(page.sent.at(-1)?.path).toBe("/api/v2/users/b/roles");
  refused = false;
  await userEvent.click(screen.getByTestId("confirm-button"));
  await waitFor(() => expect(screen.queryByTestId("confirm-button")).toBeNull());
  expect(deletions(page).filter((path) => path.endsWith("/t"))).toHaveLength(2);
});

it("says which lists it leaves out", async () => {
  const page = opened({
    "POST /api/v2/authcheck": (body: { checks: Record<string, unknown> }) =>
      Object.fromEntries(Object.keys(body.checks).map((name) => [name, name !== "keys"])),
  });
  await opensDialog();
  for (const name of ["sessions", "tokens", "devices"])
    expect(screen.getByText(`${name}: you need permission to view them.`)).toBeVisible();
  await confirms();
  await waitFor(() => expect(page.sent.at(-1)?.path).toBe("/api/v2/users/b/roles"));
  expect(deletions(page)).toEqual([]);
});

it("says that more workspaces are shared than it lists", async () => {
  const shared = { id: "w", name: "box", owner_name: "ana", last_used_at: "" };
  opened({ "GET /api/v2/workspaces": { workspaces: [shared], count: 240 } });
  expect(await screen.findAllByText(/^1 of 240 shown/)).toHaveLength(2);
});

it("shows the last use of consents", async () => {
  opened();
  const consents = within(await screen.findByRole("region", { name: "OAuth2 consents" }));
  const portal = await consents.findByText("Portal");
  expect(portal.closest("li")).toHaveTextContent(/https:\/\/p · last used \d+ years ago/);
  expect(consents.getByText("Robot").closest("li")).toHaveTextContent("https://r · never used");
});
