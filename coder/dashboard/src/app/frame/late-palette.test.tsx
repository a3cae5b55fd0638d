import { act, screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { Outlet, type RouteObject } from "react-router";
import { expect, it, vi } from "vitest";

import { SignedIn, visit } from "../../test/world";
import { LatePalette } from "./LatePalette";

/** The palette's code, which is there once the test lets it in. */
const code = vi.hoisted(() => {
  let arrive = (): void => undefined;
  const loaded = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  return { loaded, arrive: () => arrive() };
});
vi.mock("./CommandPalette", async (load) => {
  await code.loaded;
  return load();
});

function Page() {
  const [origin, setOrigin] = useState<HTMLElement | null>(null);
  return (
    <>
      <main id="content" tabIndex={-1} aria-label="Content">
        <button type="button" onClick={(event) => setOrigin(event.currentTarget)}>
          Open
        </button>
        <Outlet />
      </main>
      {origin ? (
        <LatePalette origin={origin} onClose={() => setOrigin(null)} onHelp={() => undefined} />
      ) : null}
    </>
  );
}

const NOT_FOUND = { path: "*", element: "elsewhere" };

async function open(pages: RouteObject[] = []) {
  const page = visit(
    [
      {
        element: <SignedIn bare />,
        children: [{ element: <Page />, children: [...pages, NOT_FOUND] }],
      },
    ],
    "/",
    {
      "GET /api/v2/users/me": {
        id: "u",
        username: "ana",
        email: "",
        organization_ids: ["o"],
        roles: [],
      },
      "GET /api/v2/organizations": [],
      "GET /api/v2/templates": [],
      "GET /api/v2/workspaces": { count: 0, workspaces: [] },
    },
  );
  await userEvent.click(await screen.findByRole("button", { name: "Open" }));
  return page;
}

it("keeps what is typed while its code loads", async () => {
  await open();
  const early = screen.getByRole("textbox", { name: "Search and commands" });
  expect(early).toHaveFocus();
  await userEvent.keyboard("aud");
  expect(early).toHaveValue("aud");
  act(() => code.arrive());
  const input = await screen.findByRole("combobox", { name: "Search and commands" });
  expect(input).toHaveValue("aud");
  expect(input).toHaveFocus();
  await userEvent.keyboard("it l");
  expect(input).toHaveValue("audit l");
  expect(await screen.findByRole("option", { name: "Audit logs" })).toBeVisible();
  act(() => screen.getByLabelText("Content").focus()); // as a page that is complete now
  expect(input).toHaveFocus();
});

it("returns the focus if it is closed", async () => {
  await open();
  await userEvent.keyboard("{Escape}");
  await waitFor(() => expect(screen.getByRole("button", { name: "Open" })).toHaveFocus());
});

const FORM = <input aria-label="Name" autoFocus />;

it.each([
  ["the first field of a page that is there at once", FORM, false, "Name"],
  ["the first field of a page that loads", FORM, true, "Name"],
  ["the content of a page that is there at once", "A list", false, "Content"],
  ["the content of a page that loads", "A list", true, "Content"],
] as const)("leaves the focus on %s", async (_, element, late, target) => {
  let load = (): void => undefined;
  const loading = new Promise<void>((resolve) => {
    load = resolve;
  });
  const audit = late
    ? {
        path: "/audit",
        lazy: async () => {
          await loading;
          return { element };
        },
      }
    : { path: "/audit", element };
  const page = await open([audit]);
  await screen.findByRole("combobox");
  await userEvent.keyboard("audit logs");
  expect(await screen.findByRole("option", { name: "Audit logs", selected: true })).toBeVisible();
  await userEvent.keyboard("{Enter}");
  await waitFor(() => expect(screen.queryByRole("combobox")).toBeNull());
  if (late) {
    // The control before does not get the focus back: it belongs to the page that is left.
    await waitFor(() => expect(screen.getByLabelText("Content")).toHaveFocus());
    load();
  }
  await waitFor(() => expect(page.at()).toBe("/audit"));
  await waitFor(() => expect(screen.getByLabelText(target)).toHaveFocus());
  await new Promise((done) => setTimeout(done)); // what the palette's own closing leaves behind
  expect(screen.getByLabelText(target)).toHaveFocus();
});
