import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Link } from "react-router";
import { expect, it, vi } from "vitest";

import { Refusal, visit } from "../test/world";
import { Public, Unframed } from "./guards";

it("focuses the content of the first framed page after one without a frame", async () => {
  vi.spyOn(window, "scrollTo").mockImplementation(() => undefined);
  visit(
    [
      {
        Component: Unframed,
        children: [{ path: "/setup", element: <Link to="/install">Continue</Link> }],
      },
      { element: <Public />, children: [{ path: "/install", element: <h1>Install</h1> }] },
    ],
    "/setup",
    { "GET /api/v2/users/me": new Refusal(401, "Sign in.") },
  );
  await userEvent.click(await screen.findByRole("link", { name: "Continue" }));
  expect(await screen.findByRole("heading", { name: "Install" })).toBeInTheDocument();
  await waitFor(() => expect(screen.getByRole("main")).toHaveFocus());
});
