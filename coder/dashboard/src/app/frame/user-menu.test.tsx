import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { User } from "../../api/types";
import { visit } from "../../test/world";
import { UserMenu } from "./UserMenu";

it("lists the documentation once", async () => {
  const user = { username: "ana", name: "", email: "a@b.c", avatar_url: "" } as User;
  visit([{ path: "/", element: <UserMenu user={user} /> }], "/", {
    "GET /api/v2/buildinfo": { version: "v2" },
    "GET /api/v2/appearance": {
      docs_url: "https://docs.example",
      support_links: [
        { name: "Documentation", target: "https://elsewhere.example", icon: "" },
        { name: "Report a bug", target: "https://bugs.example", icon: "" },
      ],
    },
  });
  await userEvent.click(await screen.findByTestId("user-dropdown-trigger"));
  expect(await screen.findByText("Report a bug")).toBeVisible();
  expect(screen.getAllByText("Documentation")).toHaveLength(1);
});

it("hides devices of a server without a WireGuard address", async () => {
  const user = { username: "ana", name: "", email: "a@b.c", avatar_url: "" } as User;
  visit([{ path: "/", element: <UserMenu user={user} /> }], "/", {
    "GET /api/v2/wireguard": { enabled: false },
  });
  await userEvent.click(await screen.findByTestId("user-dropdown-trigger"));
  expect(await screen.findByRole("menuitem", { name: "Account" })).toBeVisible();
  await waitFor(() => expect(screen.queryByText("WireGuard devices")).toBeNull());
});
