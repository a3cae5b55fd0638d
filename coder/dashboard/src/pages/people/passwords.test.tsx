import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { User } from "../../api/types";
import { visit } from "../../test/world";
import { CreateUserPage } from "./CreateUserPage";
import { UserDialog } from "./UserDialogs";

const LIST = { path: "/deployment/users", element: <p>The list</p> };
const open = () =>
  visit([{ path: "/create", Component: CreateUserPage }, LIST], "/create", {
    "GET /api/v2/users/authmethods": {
      password: { enabled: true },
      github: { enabled: false },
      oidc: { enabled: false },
    },
    "GET /api/v2/organizations": [],
    "POST /api/v2/users": {},
  });

async function filled() {
  await userEvent.type(await screen.findByLabelText(/^Username/), "bob");
  await userEvent.type(screen.getByLabelText(/^Email/), "bob@example.com");
}

it("shows a generated password until it is saved", async () => {
  const page = open();
  await filled();
  await userEvent.click(screen.getByRole("button", { name: "Generate" }));
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  const box = within(await screen.findByRole("group", { name: "Password of bob" }));
  await userEvent.click(box.getByRole("button", { name: "Show value" }));
  const [created] = page.sent.map((request) => request.body as { password: string });
  expect(box.getByTestId("new-password")).toHaveTextContent(created?.password ?? "-");
  expect(box.getByRole("button", { name: "Copy" })).toBeVisible();
  expect(page.at()).toBe("/create");
  await userEvent.click(screen.getByRole("link", { name: "I have saved it" }));
  await waitFor(() => expect(page.at()).toBe("/deployment/users"));
});

it("continues to the list after a typed password", async () => {
  const page = open();
  await filled();
  await userEvent.click(screen.getByRole("button", { name: "Generate" }));
  await userEvent.type(screen.getByLabelText(/^Password/), "-of-mine");
  await userEvent.click(screen.getByRole("button", { name: "Save" }));
  await waitFor(() => expect(page.at()).toBe("/deployment/users"));
});

it("shows a reset password before and after the reset", async () => {
  const closed: string[] = [];
  const page = visit(
    [
      {
        path: "/",
        element: (
          <UserDialog
            user={{ id: "u", username: "bob" } as User}
            action="password"
            onClose={() => closed.push("closed")}
          />
        ),
      },
    ],
    "/",
    { "PUT /api/v2/users/u/password": {} },
  );
  const before = (await screen.findByTestId("command")).textContent;
  await userEvent.click(screen.getByTestId("confirm-button"));
  expect(await screen.findByRole("dialog", { name: "New password of bob" })).toHaveTextContent(
    before ?? "-",
  );
  expect(page.sent.map((request) => request.body)).toEqual([
    { old_password: "", password: before },
  ]);
  expect(closed).toEqual([]);
  await userEvent.click(screen.getByRole("button", { name: "I have saved it" }));
  expect(closed).toEqual(["closed"]);
});
