import { focusManager } from "@tanstack/react-query";
import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { GroupSettingsPage } from "../pages/groups/GroupPage";
import { CreateUserPage } from "../pages/people/CreateUserPage";
import { Refusal, visit, type Answers } from "../test/world";
import { SignedIn } from "./guards";

const PASSWORD = "correct horse battery";
const ana = {
  id: "u",
  username: "ana",
  name: "",
  email: "ana@example.com",
  organization_ids: ["o"],
  roles: [],
};
const staff = {
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

/**
 * A server whose session expires on demand, and which accepts a new sign-in with the right
 * password.
 */
function server(answers: Answers) {
  const state = { out: false };
  const gated = Object.fromEntries(
    Object.entries(answers).map(([request, answer]) => [
      request,
      () => (state.out ? new Refusal(401, "You are signed out.") : answer),
    ]),
  );
  return {
    end: () => {
      state.out = true;
    },
    answers: {
      ...gated,
      "GET /api/v2/users/authmethods": {
        password: { enabled: true },
        github: { enabled: false },
        oidc: { enabled: false },
      },
      "POST /api/v2/users/login": (body: unknown) => {
        if ((body as { password: string }).password !== PASSWORD)
          return new Refusal(401, "Incorrect email or password.");
        state.out = false;
        return { session_token: "x" };
      },
    } satisfies Answers,
  };
}

const organization = { id: "o", name: "coder", display_name: "", is_default: true };
const COMMON = {
  "GET /api/v2/users/me": ana,
  "GET /api/v2/organizations": [organization],
  "GET /api/v2/users/roles": [],
};

async function signInAgain(): Promise<void> {
  const dialog = within(await screen.findByRole("dialog", { name: "Your session has ended" }));
  await userEvent.type(dialog.getByLabelText(/^Password of/), "wrong{Enter}");
  expect(await dialog.findByText("Incorrect email or password.")).toBeVisible();
  await userEvent.clear(dialog.getByLabelText(/^Password of/));
  await userEvent.type(dialog.getByLabelText(/^Password of/), `${PASSWORD}{Enter}`);
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
}

it("keeps a form through session expiry and resubmits it", async () => {
  const { end, answers } = server({
    ...COMMON,
    "GET /api/v2/organizations/coder/groups/staff": staff,
    "GET /api/v2/groups/g": staff,
    "PATCH /api/v2/groups/g": { ...staff, display_name: "Everyone here" },
  });
  const page = visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          { path: "/groups/:group/settings", element: <GroupSettingsPage /> },
          { path: "*", element: null },
        ],
      },
    ],
    "/groups/staff/settings",
    answers,
  );
  const name = await screen.findByLabelText("Display name");
  await userEvent.clear(name);
  await userEvent.type(name, "Everyone here");
  end();
  // Refocusing the window refetches the page's data, which is rejected.
  focusManager.setFocused(false);
  focusManager.setFocused(true);
  focusManager.setFocused(undefined);
  await signInAgain();
  expect(screen.getByLabelText("Display name")).toHaveValue("Everyone here");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() =>
    expect(page.sent.at(-1)).toMatchObject({
      method: "PATCH",
      path: "/api/v2/groups/g",
      body: { display_name: "Everyone here" },
    }),
  );
});

it("asks for sign-in when a form is submitted after expiry", async () => {
  const { end, answers } = server({
    ...COMMON,
    "POST /api/v2/users": { ...ana, id: "n", username: "nora" },
  });
  const page = visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          { path: "/create", element: <CreateUserPage /> },
          { path: "*", element: null },
        ],
      },
    ],
    "/create",
    answers,
  );
  await userEvent.type(await screen.findByLabelText("Username"), "nora");
  await userEvent.type(screen.getByLabelText("Email"), "nora@example.com");
  await userEvent.type(screen.getByLabelText("Password"), "a long password 1!");
  end();
  await userEvent.click(screen.getByRole("button", { name: /^(Save|Create user)/ }));
  await signInAgain();
  expect(screen.getByLabelText("Username")).toHaveValue("nora");
  expect(screen.getByLabelText("Email")).toHaveValue("nora@example.com");
  expect(screen.getByLabelText("Password")).toHaveValue("a long password 1!");
  await userEvent.click(screen.getByRole("button", { name: /^(Save|Create user)/ }));
  await waitFor(() => expect(page.at()).not.toBe("/create"));
  expect(page.sent.filter((request) => request.path === "/api/v2/users")).toHaveLength(2);
  expect(page.sent.at(-1)).toMatchObject({
    path: "/api/v2/users",
    body: { username: "nora", email: "nora@example.com", password: "a long password 1!" },
  });
});
