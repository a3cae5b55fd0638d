import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { matchRoutes } from "react-router";
import { expect, it } from "vitest";

import { templateRoutes } from "../app/routes/templates";
import { Refusal, visit } from "./world";
import { SetupPage } from "../pages/signin/SetupPage";

const ANSWERS = {
  "GET /api/v2/users/first": new Refusal(404, "none"),
  "GET /api/v2/users/authmethods": {
    password: { enabled: true },
    github: { enabled: false },
    oidc: { enabled: false },
  },
  "GET /api/v2/appearance": { application_name: "" },
  "POST /api/v2/users/first": {},
  "POST /api/v2/users/login": {},
};
const BUILDER = "/templates/new/builder";

it.each([
  ["the builder", { bases: [{ id: "docker" }] }, BUILDER],
  ["templates without a builder", new Refusal(403, "disabled"), "/templates"],
])("leads from the first account to %s", async (_name, bases, target) => {
  const page = visit(
    [
      { path: "/setup", Component: SetupPage },
      { path: "*", element: "somewhere" },
    ],
    "/setup",
    { ...ANSWERS, "GET /api/v2/templatebuilder/bases": bases },
  );
  await userEvent.type(await screen.findByLabelText(/Email/), "ana@example.com");
  await userEvent.type(screen.getByLabelText(/Password/), "a-long-password-1");
  await userEvent.click(screen.getByRole("button", { name: "Create account" }));
  await screen.findByText("somewhere");
  expect(page.sent.map((request) => request.path)).toEqual([
    "/api/v2/users/first",
    "/api/v2/users/login",
  ]);
  expect(page.at()).toBe(target);
});

it("does not take the builder for an organization's template", () => {
  expect(matchRoutes(templateRoutes, BUILDER)?.at(-1)?.route.path).toBe(BUILDER);
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
