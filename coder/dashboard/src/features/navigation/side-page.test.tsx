import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { expect, it, vi } from "vitest";

import { SignedIn, visit } from "../../test/world";
import { SECTION } from "./section";
import { SidePage } from "./SidePage";

// jsdom has no fonts.
vi.mock("../appearance/fonts", () => ({ loadFonts: () => undefined, applyFonts: () => undefined }));

const GROUPS = [
  {
    items: [
      { to: "/settings/one", text: "One" },
      { to: "/settings/two", text: "Two" },
    ],
  },
];
const Page = ({ name, children }: { name: string; children?: ReactNode }) => (
  <SidePage label="Settings" groups={GROUPS}>
    <h1>{name}</h1>
    {children}
    <button type="button">Save {name}</button>
  </SidePage>
);

it.each(["Two", "Create two"])(
  "moves the focus past the navigation by the link %s",
  async (link) => {
    visit(
      [
        {
          element: <SignedIn />,
          children: [
            {
              path: "/settings/one",
              element: (
                <Page name="first">
                  <Link to="/settings/two">Create two</Link>
                </Page>
              ),
            },
            { path: "/settings/two", element: <Page name="second" /> },
          ],
        },
      ],
      "/settings/one",
      {
        "GET /api/v2/users/me": {
          id: "u",
          username: "ana",
          email: "",
          organization_ids: [],
          roles: [],
        },
      },
    );
    (await screen.findByRole("link", { name: link })).focus();
    await userEvent.keyboard("{Enter}");
    await screen.findByRole("heading", { name: "second" });
    await waitFor(() => expect(document.getElementById(SECTION)).toHaveFocus());
    await userEvent.tab();
    expect(screen.getByRole("button", { name: "Save second" })).toHaveFocus();
  },
);

it("begins with a link past the navigation", async () => {
  visit([{ path: "/settings/one", element: <Page name="first" /> }], "/settings/one", {});
  const skip = await screen.findByRole("link", { name: "Skip the side navigation" });
  await userEvent.tab();
  expect(skip).toHaveFocus();
  expect(document.querySelector(skip.getAttribute("href") ?? "")).toHaveAttribute("tabindex", "-1");
});
