import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { visit } from "../../../test/world";
import { Reattach, ExternalPanel, installCommand } from "./ExternalPanel";

const workspace = { id: "w", name: "dev" } as Workspace;
const agent = {
  id: "a",
  name: "main",
  operating_system: "linux",
  architecture: "amd64",
} as WorkspaceAgent;

it("rotates an attached machine's token, fetching it on demand", async () => {
  const page = visit(
    [{ path: "/", element: <Reattach workspace={workspace} agent={agent} /> }],
    "/",
    {
      "GET /api/v2/workspaces/w/external-agent/main/credentials": {
        command: "curl",
        agent_token: "secret",
      },
    },
  );
  const summary = await screen.findByText("Reattach the machine or rotate its token");
  expect(page.requests).toEqual([]);
  await userEvent.click(summary);
  expect(await screen.findByRole("button", { name: "Rotate token" })).toBeVisible();
});

it("explains a missing program for the platform", async () => {
  const program = (architecture: string, available: boolean) => ({
    name: `coder-linux-${architecture}`,
    os: "linux",
    architecture,
    available,
    remedy: available ? "" : `Build it for ${architecture}.`,
  });
  visit([{ path: "/", element: <ExternalPanel workspace={workspace} agent={agent} /> }], "/", {
    "GET /api/v2/workspaces/w/external-agent/main/credentials": {
      command: "curl",
      agent_token: "secret",
    },
    "GET /api/v2/programs": [
      program("amd64", true),
      program("arm64", false),
      { ...program("amd64", false), name: "coder-windows-amd64.exe", os: "windows" },
    ],
  });
  expect(
    await screen.findByRole("option", { name: "Linux, ARM, 64-bit (program missing)" }),
  ).toBeVisible();
  expect(screen.queryByText("This server has no program for this platform")).toBeNull();
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "linux/arm64");
  expect(await screen.findByText("This server has no program for this platform")).toBeVisible();
  expect(screen.getByText(/Build it for arm64/)).toBeVisible();
  expect(screen.getByText(/pipx install/)).toBeVisible();
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "windows/amd64");
  expect(await screen.findByText(/inside WSL/)).toBeVisible();
  expect(screen.queryByText(/pipx install/)).toBeNull(); // the wheel has no agent there
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "linux/amd64");
  expect(screen.queryByText("This server has no program for this platform")).toBeNull();
});

const COMMAND =
  'curl -fsSL "https://coder.example.com/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="secret" sh';

it.each([
  [
    "fetches the program of the platform",
    { programMissing: false, systemWide: false },
    'curl -fsSL "https://coder.example.com/bin/coder-linux-arm64" -o ./coder-install && ' +
      'chmod +x ./coder-install && CODER_AGENT_TOKEN="secret" ./coder-install agent ' +
      'install --agent-url "https://coder.example.com" && rm ./coder-install',
  ],
  [
    "takes what is installed where the server has none",
    { programMissing: true, systemWide: false },
    'CODER_AGENT_TOKEN="secret" coder agent install --agent-url "https://coder.example.com"',
  ],
  [
    "is for the whole machine by root",
    { programMissing: true, systemWide: true },
    'CODER_AGENT_TOKEN="secret" sudo --preserve-env=CODER_AGENT_TOKEN coder agent install --agent-url "https://coder.example.com" --system',
  ],
])("the service command %s", (_, options, expected) =>
  expect(installCommand(COMMAND, "secret", "linux/arm64", options)).toBe(expected),
);

it("tells beside the command how the machine comes back after a reboot, with the token hidden", async () => {
  visit([{ path: "/", element: <ExternalPanel workspace={workspace} agent={agent} /> }], "/", {
    "GET /api/v2/workspaces/w/external-agent/main/credentials": {
      command: COMMAND,
      agent_token: "secret",
    },
  });
  await userEvent.click(await screen.findByText("Keep attached after a reboot"));
  const box = await screen.findByTestId("install-command");
  expect(box).toHaveTextContent("agent install");
  expect(box).not.toHaveTextContent("secret");
  await userEvent.click(screen.getByRole("checkbox", { name: /Install system-wide/ }));
  expect(box).toHaveTextContent("sudo --preserve-env=CODER_AGENT_TOKEN");
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "windows/amd64");
  expect(screen.queryByText("Keep attached after a reboot")).toBeNull(); // no service exists there
});
