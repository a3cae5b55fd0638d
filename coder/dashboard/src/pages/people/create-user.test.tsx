// Roles in the form: the creator chooses roles among those they may assign.
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { Refusal, visit, type Answers } from "../../test/world";
import { CreateUserPage } from "./CreateUserPage";

const role = (name: string, assignable: boolean) => ({
  name,
  display_name: name,
  organization_id: "",
  assignable,
  built_in: true,
  site_permissions: [],
  user_permissions: [],
  organization_permissions: [],
  organization_member_permissions: [],
});

function open(answers: Answers = {}) {
  return visit(
    [
      { path: "/create", Component: CreateUserPage },
      { path: "*", element: "the list" },
    ],
    "/create",
    {
      "GET /api/v2/users/authmethods": {
        password: { enabled: true },
        github: { enabled: false },
        oidc: { enabled: false },
      },
      "GET /api/v2/organizations": [],
      "GET /api/v2/users/roles": [
        role("owner", false),
        role("template-admin", true),
        role("auditor", true),
      ],
      "POST /api/v2/users": { id: "u" },
      "PUT /api/v2/users/u/roles": {},
      ...answers,
    },
  );
}

async function fill() {
  await userEvent.type(await screen.findByLabelText(/^Username/), "bob");
  await userEvent.type(screen.getByLabelText(/^Email/), "bob@example.com");
  await userEvent.type(screen.getByLabelText(/^Password/), "a long password 1!");
}
const save = () => userEvent.click(screen.getByRole("button", { name: "Save" }));

it("offers assignable roles and assigns them after creation", async () => {
  const page = open();
  await fill();
  await userEvent.click(await screen.findByRole("checkbox", { name: "auditor" }));
  expect(screen.queryByRole("checkbox", { name: "owner" })).toBeNull();
  await save();
  await waitFor(() => expect(page.at()).toBe("/deployment/users"));
  expect(page.sent.map((request) => request.path)).toEqual([
    "/api/v2/users",
    "/api/v2/users/u/roles",
  ]);
  expect(page.sent[0]?.body).not.toHaveProperty("roles");
  expect(page.sent[1]?.body).toEqual({ roles: ["auditor"] });
});

it("assigns no roles if none were chosen", async () => {
  const page = open();
  await fill();
  await save();
  await waitFor(() => expect(page.sent.map((request) => request.path)).toEqual(["/api/v2/users"]));
});

it("leaves the form if only the roles were rejected", async () => {
  const page = open({ "PUT /api/v2/users/u/roles": new Refusal(400, "no") });
  await fill();
  await userEvent.click(await screen.findByRole("checkbox", { name: "auditor" }));
  await save();
  await waitFor(() => expect(page.at()).toBe("/deployment/users"));
});
