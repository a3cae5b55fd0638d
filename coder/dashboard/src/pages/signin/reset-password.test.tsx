import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { Refusal, visit } from "../../test/world";
import { ResetPasswordPage } from "./ResetPasswordPage";

const open = (delivery: unknown) =>
  visit([{ path: "/reset-password", Component: ResetPasswordPage }], "/reset-password", {
    "GET /api/v2/notifications/passcodes": delivery,
    "GET /api/v2/appearance": { application_name: "" },
    "POST /api/v2/users/otp/request": {},
  });

it("explains the alternatives without a mail server", async () => {
  open({ available: false });
  expect(
    await screen.findByText("This deployment sends no mail, so it cannot send you a code"),
  ).toBeVisible();
  expect(screen.getByText("coder reset-password USERNAME")).toBeVisible();
  expect(screen.queryByLabelText("Email")).toBeNull();
});

it.each([
  ["mail is set up", { available: true }],
  ["nobody knows", new Refusal(500, "no")],
])("offers a code if %s", async (_, delivery) => {
  const page = open(delivery);
  await userEvent.type(await screen.findByLabelText("Email"), "ana@example.com");
  await userEvent.click(screen.getByRole("button", { name: "Reset password" }));
  expect(
    await screen.findByText("If ana@example.com has an account, a code was sent to it."),
  ).toBeVisible();
  expect(page.sent.map((request) => request.path)).toEqual(["/api/v2/users/otp/request"]);
});
