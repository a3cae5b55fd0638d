import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { Refusal, visit } from "../test/world";
import { Public } from "./guards";

it("asks for no permissions of a visitor without a session", async () => {
  const page = visit(
    [{ element: <Public />, children: [{ path: "/", element: <h1>Install</h1> }] }],
    "/",
    { "GET /api/v2/users/me": new Refusal(401, "Sign in.") },
  );
  expect(await screen.findByRole("heading", { name: "Install" })).toBeInTheDocument();
  expect(screen.getByRole("link", { name: "Sign in" })).toBeInTheDocument();
  expect(page.requests).not.toContain("POST /api/v2/authcheck");
});
