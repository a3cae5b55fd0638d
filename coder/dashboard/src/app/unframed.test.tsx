import { fireEvent, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { Link } from "react-router";
import { expect, it, vi } from "vitest";

import { Refusal, visit } from "../test/world";
import { Public, Unframed } from "./guards";

const routes = [
  {
    Component: Unframed,
    children: [{ path: "/setup", element: <Link to="/install">Continue</Link> }],
  },
  { element: <Public />, children: [{ path: "/install", element: <h1>Install</h1> }] },
];
const open = () => {
  vi.spyOn(window, "scrollTo").mockImplementation(() => undefined);
  visit(routes, "/setup", { "GET /api/v2/users/me": new Refusal(401, "Sign in.") });
};

it("leaves the focus in a dialog that opened while the page was loading", async () => {
  open();
  const dialog = document.createElement("div");
  dialog.setAttribute("role", "dialog");
  const field = dialog.appendChild(document.createElement("input"));
  document.body.append(dialog);
  field.focus();
  fireEvent.click(await screen.findByRole("link", { name: "Continue" }));
  expect(await screen.findByRole("heading", { name: "Install" })).toBeInTheDocument();
  expect(field).toHaveFocus();
  dialog.remove();
});

it("focuses the content of the first framed page after one without a frame", async () => {
  open();
  await userEvent.click(await screen.findByRole("link", { name: "Continue" }));
  expect(await screen.findByRole("heading", { name: "Install" })).toBeInTheDocument();
  await waitFor(() => expect(screen.getByRole("main")).toHaveFocus());
});
