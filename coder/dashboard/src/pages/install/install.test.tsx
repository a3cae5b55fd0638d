import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import type { Program } from "../../api/types";
import { Refusal, visit } from "../../test/world";
import { InstallPage } from "./InstallPage";
import { fileOf, PLATFORMS } from "../../lib/platforms";

const programs = (available: readonly string[]): Program[] =>
  PLATFORMS.map((item) => ({
    name: fileOf(item),
    os: item.system,
    architecture: item.architecture,
    available: available.includes(fileOf(item)),
    remedy: `Build ${fileOf(item)}.`,
  }));
const open = (os: string, answer: unknown) =>
  visit([{ path: "/install", Component: InstallPage }], `/install?os=${os}`, {
    "GET /api/v2/buildinfo": { dashboard_url: "https://coder.test" },
    "GET /api/v2/programs": answer,
  });

it("lists available downloads and marks missing ones", async () => {
  open("linux", programs(["coder-linux-amd64"]));
  expect(
    await screen.findByText("This server has no CLI for Linux on ARM, 64-bit and ARM, 32-bit."),
  ).toBeVisible();
  expect(screen.getByRole("link", { name: "Intel/AMD, 64-bit" })).toHaveAttribute(
    "href",
    "/bin/coder-linux-amd64",
  );
  expect(screen.queryByRole("link", { name: "ARM, 64-bit" })).toBeNull();
  expect(screen.getByText("For administrators:")).toBeVisible();
  expect(screen.getAllByRole("listitem").map((link) => link.textContent)).toEqual([
    "Build coder-linux-arm64.",
    "Build coder-linux-armv7.",
  ]);
  const command = screen.getByRole("group", {
    name: "Command that installs the CLI on Linux",
  });
  // Notes about other machines come after the common case.
  expect(command.compareDocumentPosition(screen.getByText("For administrators:"))).toBe(
    Node.DOCUMENT_POSITION_FOLLOWING,
  );
});

it("explains the alternatives without any download", async () => {
  open("darwin", programs(["coder-linux-amd64"]));
  expect(await screen.findByText("This server has no CLI for macOS.")).toBeVisible();
  expect(screen.getByText("pipx install FILE.whl")).toBeVisible();
  expect(screen.getByText("Once the server has it, this command installs it:")).toBeVisible();
  expect(screen.queryAllByRole("link")).toEqual([]);
  expect(screen.getByRole("group", { name: "Sign-in command" })).toBeVisible();
});

it.each([
  ["all are there", programs(PLATFORMS.map(fileOf))],
  ["nobody knows", new Refusal(500, "no")],
])("shows no warning if %s", async (_, answer) => {
  const page = open("windows", answer);
  expect(await screen.findByRole("link", { name: "ARM" })).toHaveAttribute(
    "href",
    "/bin/coder-windows-arm64.exe",
  );
  expect(screen.queryByRole("status", { name: /no program/ })).toBeNull();
  expect(screen.queryByText(/has no program/)).toBeNull();
  expect(page.requests).toContain("GET /api/v2/programs");
});
