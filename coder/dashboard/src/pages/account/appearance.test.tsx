import { focusManager } from "@tanstack/react-query";
import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import { visit } from "../../test/world";
import { AppearancePage } from "./AppearancePage";

it("keeps the last of two quick choices", async () => {
  Object.defineProperty(document, "fonts", {
    value: { load: () => Promise.resolve([]) },
    configurable: true,
  }); // missing in jsdom
  let stored: Record<string, string> = {
    theme_preference: "light",
    theme_mode: "single",
    terminal_font: "",
  };
  const waiting: (() => void)[] = [];
  const page = visit([{ path: "/", Component: AppearancePage }], "/", {
    "GET /api/v2/users/me/appearance": () => stored,
    "PUT /api/v2/users/me/appearance": (body: unknown) =>
      new Promise((done) =>
        waiting.push(() => {
          stored = body as Record<string, string>;
          done(stored);
        }),
      ),
  });
  await userEvent.click(await screen.findByRole("radio", { name: "Dark high contrast" }));
  await userEvent.click(screen.getByRole("radio", { name: /^Fira Code/ }));
  focusManager.setFocused(false);
  focusManager.setFocused(true);
  await waitFor(() => {
    expect(waiting).toHaveLength(1);
  });
  expect(screen.getByRole("radio", { name: /^Fira Code/ })).toBeChecked();
  waiting[0]?.();
  await waitFor(() => {
    expect(waiting).toHaveLength(2);
  });
  expect(screen.getByRole("radio", { name: /^Fira Code/ })).toBeChecked();
  waiting[1]?.();
  await waitFor(() => {
    expect(stored["terminal_font"]).toBe("fira-code");
  });
  expect(stored["theme_preference"]).toBe("dark-contrast");
  expect(page.sent.map((request) => request.path)).toHaveLength(2);
  await waitFor(() => {
    expect(screen.getByRole("radio", { name: "Dark high contrast" })).toBeChecked();
  });
  focusManager.setFocused(undefined);
});
