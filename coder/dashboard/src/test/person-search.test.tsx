import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { GroupPage } from "../pages/groups/GroupPage";
import { visit } from "./world";

const member = (number: number) => ({
  user_id: `u${number}`,
  username: `person-${number}`,
  email: `person-${number}@example.com`,
  avatar_url: "",
});
const group = {
  id: "g",
  name: "staff",
  display_name: "Staff",
  avatar_url: "",
  quota_allowance: 0,
  members: [],
  total_member_count: 0,
  source: "user",
  organization_id: "o",
};

it("finds any member of a large organization", async () => {
  const all = Array.from({ length: 2000 }, (_, number) => member(number));
  let params = new URLSearchParams();
  const page = visit([{ path: "/groups/:group", element: <GroupPage /> }], "/groups/staff", {
    "GET /api/v2/organizations": [{ id: "o", name: "coder", display_name: "", is_default: true }],
    "GET /api/v2/organizations/coder/groups/staff": group,
    "GET /api/v2/organizations/coder/paginated-members": () => {
      const matching = all.filter((candidate) =>
        candidate.username.includes(params.get("q") ?? ""),
      );
      return { members: matching.slice(0, Number(params.get("limit"))), count: matching.length };
    },
    "PATCH /api/v2/groups/g": group,
  });
  const real = globalThis.fetch;
  vi.stubGlobal("fetch", (target: string, init?: RequestInit) => {
    if (target.includes("/paginated-members")) params = new URL(target, "http://x").searchParams;
    return real(target, init);
  });
  await userEvent.type(await screen.findByRole("combobox", { name: "User" }), "person-1987");
  await userEvent.click(await screen.findByRole("option", { name: /person-1987/ }));
  await userEvent.click(screen.getByRole("button", { name: "Add user" }));
  await waitFor(() =>
    expect(page.sent.at(-1)).toMatchObject({
      path: "/api/v2/groups/g",
      body: { add_users: ["u1987"] },
    }),
  );
  expect(page.requests.filter((request) => request === "GET /api/v2/users")).toEqual([]);
});
