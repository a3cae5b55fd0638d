import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState, type ComponentType } from "react";
import { expect, it, vi } from "vitest";

import { visit, type Answers } from "./world";
import { AuditPage } from "../pages/logs/AuditPage";
import { ConnectionLogPage } from "../pages/logs/ConnectionLogPage";
import { TemplatesPage } from "../pages/templates/TemplatesPage";
import { STATUS } from "../features/workspace/status";
import { WorkspacesPage } from "../pages/workspaces/WorkspacesPage";
import { FilterBar } from "../ui/lists/FilterBar";
import { peopleMenu } from "../features/person/people-menu";

vi.mock("../features/session/useMe", () => ({
  useMe: () => ({ id: "u", username: "ana", roles: [] }),
}));

const person = (username: string, name = "") => ({
  id: username,
  username,
  name,
  email: `${username}@example.com`,
  avatar_url: "",
});
const FIRST = { users: [person("ana"), person("bob")], count: 3000 };

function Bar() {
  const [filter, setFilter] = useState("");
  return (
    <>
      <FilterBar
        label="Search things"
        placeholder=""
        filter={filter}
        onChange={setFilter}
        menus={[peopleMenu("owner", "Owner")]}
      />
      <output>{filter}</output>
    </>
  );
}

it("finds users at the server beyond the first ones", async () => {
  let searched = "";
  visit([{ path: "/", element: <Bar /> }], "/", {
    "GET /api/v2/users": () =>
      searched === "zoe" ? { users: [person("u2999", "Zoe Zander")], count: 1 } : FIRST,
  });
  const real = globalThis.fetch;
  vi.stubGlobal("fetch", (target: string, init?: RequestInit) => {
    searched = new URL(target, "http://x").searchParams.get("q") ?? "";
    return real(target, init);
  });
  await userEvent.click(screen.getByRole("button", { name: "Owner" }));
  expect((await screen.findAllByRole("option")).map((option) => option.textContent)).toEqual(
    expect.arrayContaining(["Any", "Me"]),
  );
  expect(await screen.findByRole("option", { name: /bob/ })).toBeVisible();
  await userEvent.type(screen.getByRole("searchbox", { name: "Search options" }), "zoe");
  await userEvent.click(await screen.findByRole("option", { name: /u2999/ }));
  expect(screen.getByRole("status")).toHaveTextContent("owner:u2999");
  expect(screen.getByRole("button", { name: "Owner: u2999" })).toBeVisible();
  await userEvent.click(screen.getByRole("button", { name: "Owner: u2999" }));
  await userEvent.click(await screen.findByRole("option", { name: "Any" }));
  expect(screen.getByRole("status")).toHaveTextContent("");
});

const organization = (name: string) => ({
  id: name,
  name,
  display_name: name.toUpperCase(),
  is_default: name === "a",
});
const ANSWERS: Answers = {
  "GET /api/v2/users": FIRST,
  "GET /api/v2/organizations": [organization("a"), organization("b")],
  "GET /api/v2/templates": [],
  "GET /api/v2/workspaces": { workspaces: [], count: 0 },
  "GET /api/v2/audit": { audit_logs: [], count: 0, count_cap: 0 },
  "GET /api/v2/connectionlog": { connection_logs: [], count: 0, count_cap: 0 },
};

const PEOPLE: readonly (readonly [ComponentType, string, string])[] = [
  [WorkspacesPage, "Owner", "owner"],
  [AuditPage, "All users", "username"],
  [ConnectionLogPage, "Owner", "workspace_owner"],
];

it.each(PEOPLE)("%o has a user menu that searches the server", async (Page, label, term) => {
  const page = visit([{ path: "/", element: <Page /> }], "/?filter=x", ANSWERS);
  await userEvent.click(await screen.findByRole("button", { name: label }));
  await userEvent.click(await screen.findByRole("option", { name: /bob/ }));
  await waitFor(() => expect(page.at()).toContain(encodeURIComponent(`${term}:bob`)));
});

it("offers every state of a listed workspace", async () => {
  visit([{ path: "/", element: <WorkspacesPage /> }], "/", ANSWERS);
  await userEvent.click(await screen.findByRole("button", { name: "Status" }));
  const offered = (await screen.findAllByRole("menuitem")).map((item) => item.textContent);
  expect(offered).toEqual([
    "Any",
    ...Object.entries(STATUS)
      .filter(([state]) => state !== "deleted")
      .map(([, [word]]) => word),
  ]);
});

it("filters templates by organization if there are several", async () => {
  const page = visit([{ path: "/", element: <TemplatesPage /> }], "/", ANSWERS);
  await userEvent.click(await screen.findByRole("button", { name: "Organization" }));
  await userEvent.click(await screen.findByRole("menuitem", { name: "B" }));
  await waitFor(() => expect(page.at()).toContain(encodeURIComponent("organization:b")));
});
