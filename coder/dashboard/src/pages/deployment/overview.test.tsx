import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { OverviewPage } from "./OverviewPage";

const answers = (check: object) => ({ "GET /api/v2/updatecheck": () => check });

it("names a newer release and its notes", async () => {
  const check = { current: false, version: "v2.36.0", url: "https://example.com/notes" };
  visit([{ path: "/", element: <OverviewPage /> }], "/", answers(check));
  expect(await screen.findByText("Coder v2.36.0 is available")).toBeVisible();
  expect(screen.getByRole("link", { name: "release notes" })).toHaveAttribute(
    "href",
    "https://example.com/notes",
  );
});

it("links no notes that the list does not name", async () => {
  const check = { current: false, version: "v2.36.0", url: "" };
  visit([{ path: "/", element: <OverviewPage /> }], "/", answers(check));
  expect(await screen.findByText("Coder v2.36.0 is available")).toBeVisible();
  expect(screen.queryByRole("link", { name: "release notes" })).toBeNull();
});

it("says nothing about the server's own release", async () => {
  const check = { current: true, version: "v2.34.0", url: "https://example.com" };
  visit([{ path: "/", element: <OverviewPage /> }], "/", answers(check));
  expect(await screen.findByText("Experiments")).toBeVisible();
  expect(screen.queryByText(/is available/)).toBeNull();
});
