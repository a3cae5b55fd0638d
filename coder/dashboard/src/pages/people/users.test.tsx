import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { visit } from "../../test/world";
import { UsersPage } from "./UsersPage";

vi.mock("../../app/guards", () => ({ useMe: () => ({ id: "old", username: "old", roles: [] }) }));

const person = (username: string, status: string, last_seen_at: string) => ({ id: username, username, name: username === "new" ? "Nora New" : "", email: `${username}@example.com`, avatar_url: "", status, last_seen_at, login_type: "password", roles: [], organization_ids: [] });

it("says in words that somebody has not signed in yet", async () => {
  visit([{ path: "/", element: <UsersPage /> }], "/", {
    "GET /api/v2/users": { users: [person("new", "dormant", "0001-01-01T00:00:00Z"), person("old", "active", new Date().toISOString())], count: 2 },
    "GET /api/v2/users/me": person("old", "active", new Date().toISOString()),
    "GET /api/v2/users/roles": [], "GET /api/v2/organizations": [],
  });
  expect(await screen.findByText("has not signed in yet")).toBeVisible();
  expect(screen.getByText("just now")).toBeVisible();
  expect(screen.queryByText("never")).toBeNull();
  expect(screen.getByText("Nora New")).toBeVisible(); // the full name stands beside the address, not instead of it
  expect(screen.getByText("new@example.com")).toBeVisible();
});
