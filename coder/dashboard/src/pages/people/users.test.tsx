import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { visit } from "../../test/world";
import { UsersPage } from "./UsersPage";

vi.mock("../../features/session/useMe", () => ({
  useMe: () => ({ id: "old", username: "old", roles: [] }),
}));

const person = (username: string, status: string, last_seen_at: string) => ({
  id: username,
  username,
  name: username === "new" ? "Nora New" : "",
  email: `${username}@example.com`,
  avatar_url: "",
  status,
  last_seen_at,
  login_type: "password",
  roles: [],
  organization_ids: [],
});

it("shows that a user never signed in", async () => {
  visit([{ path: "/", element: <UsersPage /> }], "/", {
    "GET /api/v2/users": {
      users: [
        person("new", "dormant", "0001-01-01T00:00:00Z"),
        person("old", "active", new Date().toISOString()),
      ],
      count: 2,
    },
    "GET /api/v2/users/me": person("old", "active", new Date().toISOString()),
    "GET /api/v2/users/roles": [],
    "GET /api/v2/organizations": [],
  });
  expect(await screen.findByText("never signed in")).toBeVisible();
  expect(screen.getByText("just now")).toBeVisible();
  expect(screen.queryByText("never")).toBeNull();
  expect(screen.getByText("Nora New")).toBeVisible(); // the full name comes in addition to the address
  expect(screen.getByText("new@example.com")).toBeVisible();
});

it("ends a session of another user", async () => {
  let sessions = [
    {
      id: "laptop",
      ip_address: "10.0.0.2",
      user_agent: "",
      current: false,
      created_at: "2026-01-01T00:00:00Z",
      last_used: "2026-01-02T00:00:00Z",
      expires_at: "2030-01-01T00:00:00Z",
      login_type: "password",
      scopes: ["coder:all"],
    },
  ];
  const page = visit([{ path: "/", element: <UsersPage /> }], "/", {
    "GET /api/v2/users": { users: [person("new", "active", "2026-01-01T00:00:00Z")], count: 1 },
    "GET /api/v2/users/me": person("old", "active", new Date().toISOString()),
    "GET /api/v2/users/roles": [],
    "GET /api/v2/organizations": [],
    "GET /api/v2/users/new/sessions": () => sessions,
    "DELETE /api/v2/users/new/keys/laptop": () => {
      sessions = [];
      return {};
    },
  });
  await userEvent.click(await screen.findByRole("button", { name: "Open menu" }));
  await userEvent.click(await screen.findByRole("menuitem", { name: "Sessions…" }));
  await userEvent.click(
    await screen.findByRole("button", { name: "End the session from 10.0.0.2" }),
  );
  await userEvent.click(await screen.findByRole("button", { name: "End session" }));
  expect(await screen.findByText(/^No active sessions/)).toBeVisible();
  expect(page.sent.map((request) => request.path)).toEqual(["/api/v2/users/new/keys/laptop"]);
});
