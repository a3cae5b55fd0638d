// Every page of the dashboard with a server that refuses its requests: no page loads for ever, and each
// says that something failed.
import { screen, waitFor } from "@testing-library/react";
import type { RouteObject } from "react-router";
import { expect, it } from "vitest";

import { bareRoutes, framedRoutes } from "../app/routes";
import { hostile } from "./hostile";
import { ANSWERS } from "./hostile-answers";
import { Refusal, SignedIn, visit, type Answers } from "./world";

const BUSY = new Refusal(500, "Database is busy.");
const ME = { id: "me", username: "ana", email: "", roles: [], organization_ids: ["o"] };
const VALUES: Readonly<Record<string, string>> = { owner: "@ana", number: "1" };

/** The addresses of all pages: layouts stand in the addresses of their children. */
function addresses(routes: readonly RouteObject[], base = ""): string[] {
  return routes.flatMap((route) => {
    const path =
      route.path === undefined
        ? base
        : route.path.startsWith("/")
          ? route.path
          : `${base}/${route.path}`;
    if (route.children) return addresses(route.children, path);
    return route.path === "*"
      ? []
      : [path.replace(/:(\w+)/g, (_, name: string) => VALUES[name] ?? "x")];
  });
}

const ROUTES = [...framedRoutes, ...bareRoutes];
/** Each page once: the pages of a template have a second, shorter address. */
const PAGES = [...new Set(addresses(ROUTES))].filter(
  (address) => !/^\/templates\/x(?:\/(?!x)|$)/.test(address),
);

/** Pages without a request of their own that could fail, with the reason. */
const SILENT: Readonly<Record<string, string>> = {
  "/organizations/new": "a form that is shown until the permissions are known: the server decides",
};

async function settled(address: string, answers: Answers) {
  const page = visit([{ element: <SignedIn bare />, children: ROUTES }], address, answers);
  await waitFor(() => expect(page.requests).toContain("GET /api/v2/users/me"));
  await waitFor(
    () => {
      expect(page.fetching()).toBe(0);
      expect(screen.queryByRole("status", { name: /^(Loading|Redirecting)/ })).toBeNull();
    },
    { timeout: 10_000 },
  );
  return page;
}

it("finds the pages", () => expect(PAGES.length).toBeGreaterThan(80));

it.each(PAGES)("%s: names the failure when every request is refused", async (address) => {
  const page = await settled(address, {
    "GET *": BUSY,
    "POST *": BUSY,
    "POST /api/v2/authcheck": BUSY,
    "GET /api/v2/users/me": ME,
  });
  const asked = page.requests.filter((request) => request !== "GET /api/v2/users/me");
  if (asked.length === 0 || SILENT[address]) return;
  await waitFor(() => expect(document.body).toHaveTextContent("Database is busy."));
});

it.each(PAGES)("%s: does not load for ever when permissions are refused", async (address) => {
  const answers = { ...hostile(ANSWERS), "GET /api/v2/users/roles": [] };
  await settled(address, { ...answers, "POST /api/v2/authcheck": BUSY });
  expect(document.body).not.toHaveTextContent("Unexpected Application Error");
});
