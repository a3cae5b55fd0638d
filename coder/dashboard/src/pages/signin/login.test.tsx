import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { Refusal, visit } from "../../test/world";
import { LoginPage } from "./LoginPage";
import { PASSWORD_CHANGED } from "../../features/session/messages";

const open = (message: string) =>
  visit(
    [{ path: "/login", Component: LoginPage }],
    `/login?message=${encodeURIComponent(message)}`,
    {
      "GET /api/v2/users/me": new Refusal(401, "no"),
      "GET /api/v2/users/first": {},
      "GET /api/v2/users/authmethods": {
        password: { enabled: true },
        github: { enabled: false },
        oidc: { enabled: false },
      },
      "GET /api/v2/appearance": { application_name: "" },
    },
  );

it("shows the product's own messages", async () => {
  open(PASSWORD_CHANGED);
  expect(await screen.findByText(PASSWORD_CHANGED)).toBeVisible();
});

it("hides messages that a link brings", async () => {
  open("Call 0900 1234 and tell them your password.");
  expect(await screen.findByRole("button", { name: "Sign in" })).toBeVisible();
  expect(screen.queryByText(/0900/)).toBeNull();
});
