import { screen, waitFor } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it, vi } from "vitest";

import { visit } from "../../test/world";
import type { TerminalRequest } from "./stream";
import { TerminalPage } from "./TerminalPage";

// xterm draws with APIs that jsdom lacks: the test checks the command it was given.
vi.mock("./TerminalView", () => ({
  TerminalView: (props: { request: TerminalRequest; onLeave: () => void; leaveHint: string }) => (
    <>
      <p>{`runs: ${props.request.command || "a shell"}`}</p>
      <textarea aria-label="Input" aria-describedby={props.leaveHint} onKeyDown={props.onLeave} />
    </>
  ),
}));

const app = (slug: string, more: object = {}) => ({
  id: slug,
  slug,
  display_name: slug,
  statuses: [],
  ...more,
});
const apps = [
  app("top", { command: "htop" }),
  app("code-server", { url: "http://localhost:1" }),
  app("empty", { command: "" }),
];
const workspace = {
  id: "w",
  name: "dev",
  owner_name: "ana",
  latest_build: {
    status: "running",
    resources: [{ agents: [{ id: "a", name: "main", lifecycle_state: "ready", apps }] }],
  },
};
const open = (query: string) =>
  visit(
    [{ path: "/:owner/:workspace/terminal", Component: TerminalPage }],
    `/@ana/dev.main/terminal${query}`,
    { "GET /api/v2/users/ana/workspace/dev": workspace },
  );

it.each([
  ["", "a shell"],
  ["?app=top", "htop"],
  ["?app=top&command=rm", "htop"],
  ["?app=code-server", "a shell"],
])("%j runs at once: %s", async (query, runs) => {
  open(query);
  expect(await screen.findByText(`runs: ${runs}`)).toBeVisible();
});

it.each([
  "?command=rm",
  "?app=code-server&command=rm",
  "?app=empty&command=rm",
  "?app=nothing&command=rm",
])("%j with another command runs only after confirmation", async (query) => {
  open(query);
  expect(await screen.findByRole("dialog", { name: "Run command?" })).toHaveTextContent("rm");
  expect(screen.queryByText(/^runs:/)).toBeNull();
});

it("runs a link's command after confirmation", async () => {
  open("?command=rm");
  await userEvent.click(await screen.findByRole("button", { name: "Run command" }));
  expect(await screen.findByText("runs: rm")).toBeVisible();
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
});

it.each(["button", "Escape"])(
  "runs nothing when declined by %s, and asks again on request",
  async (button) => {
    open("?command=rm");
    const no = await screen.findByRole("button", { name: "Cancel" });
    await (button === "button" ? userEvent.click(no) : userEvent.keyboard("{Escape}"));
    await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
    expect(screen.getByText("The command was not run")).toBeVisible();
    expect(screen.queryByText(/^runs:/)).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Review command" }));
    expect(await screen.findByRole("dialog", { name: "Run command?" })).toHaveTextContent("rm");
  },
);

it("says how to leave the terminal, and goes to the page's first link", async () => {
  open("");
  const input = await screen.findByLabelText("Input");
  expect(input).toHaveAccessibleDescription("Ctrl+Shift+L leaves the terminal");
  input.focus();
  await userEvent.keyboard("{Control>}{Shift>}L{/Shift}{/Control}");
  expect(screen.getByRole("link", { name: "ana/dev" })).toHaveFocus();
});
