import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { matchRoutes } from "react-router";
import { expect, it } from "vitest";

import { templateRoutes } from "../app/routes/templates";
import { Refusal, visit } from "./world";
import { SetupPage } from "../pages/signin/SetupPage";

it("leads from the first account to a first template", async () => {
  const page = visit(
    [
      { path: "/setup", Component: SetupPage },
      { path: "*", element: "somewhere" },
    ],
    "/setup",
    {
      "GET /api/v2/users/first": new Refusal(404, "none"),
      "GET /api/v2/users/authmethods": {
        password: { enabled: true },
        github: { enabled: false },
        oidc: { enabled: false },
      },
      "GET /api/v2/appearance": { application_name: "" },
      "POST /api/v2/users/first": {},
      "POST /api/v2/users/login": {},
    },
  );
  await userEvent.type(await screen.findByLabelText(/Email/), "ana@example.com");
  await userEvent.type(screen.getByLabelText(/Password/), "a-long-password-1");
  await userEvent.click(screen.getByRole("button", { name: "Create account" }));
  await screen.findByText("somewhere");
  expect(page.sent.map((request) => request.path)).toEqual([
    "/api/v2/users/first",
    "/api/v2/users/login",
  ]);
  expect(page.at()).toBe("/templates");
  // Not a template "builder" of an organization "new".
  const builder = "/templates/new/builder";
  expect(matchRoutes(templateRoutes, builder)?.at(-1)?.route.path).toBe(builder);
});

it("creates one account despite failed sign-ins", async () => {
  let login: unknown = new Refusal(500, "The database is gone.");
  const page = visit(
    [
      { path: "/setup", Component: SetupPage },
      { path: "*", element: "somewhere" },
    ],
    "/setup",
    {
      "GET /api/v2/users/first": new Refusal(404, "none"),
      "GET /api/v2/users/authmethods": {
        password: { enabled: true },
        github: { enabled: false },
        oidc: { enabled: false },
      },
      "GET /api/v2/appearance": { application_name: "" },
      "POST /api/v2/users/first": {},
      "POST /api/v2/users/login": () => login,
    },
  );
  await userEvent.type(await screen.findByLabelText(/Email/), "ana@example.com");
  await userEvent.type(screen.getByLabelText(/Password/), "a-long-password-1");
  await userEvent.click(screen.getByRole("button", { name: "Create account" }));
  expect(await screen.findByText("The database is gone.")).toBeVisible();
  login = {};
  await userEvent.click(screen.getByRole("button", { name: "Create account" }));
  await screen.findByText("somewhere");
  expect(page.sent.map((request) => request.path)).toEqual([
    "/api/v2/users/first",
    "/api/v2/users/login",
    "/api/v2/users/login",
  ]);
});
