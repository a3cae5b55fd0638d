import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { visit } from "../../../test/world";
import { AttachAgain, ExternalPanel } from "./ExternalPanel";

const workspace = { id: "w", name: "dev" } as Workspace;
const agent = { id: "a", name: "main", operating_system: "linux", architecture: "amd64" } as WorkspaceAgent;

it("rotates the token of a machine that is attached, and asks for the secret only then", async () => {
  const page = visit([{ path: "/", element: <AttachAgain workspace={workspace} agent={agent} /> }], "/", {
    "GET /api/v2/workspaces/w/external-agent/main/credentials": { command: "curl", agent_token: "secret" },
  });
  const summary = await screen.findByText("Attach it again, or rotate its token");
  expect(page.asked).toEqual([]);
  await userEvent.click(summary);
  expect(await screen.findByRole("button", { name: "Rotate token" })).toBeVisible();
});

it("says when the server lacks the program of the chosen platform, and what to do", async () => {
  const program = (architecture: string, available: boolean) => ({ name: `coder-linux-${architecture}`, os: "linux", architecture, available, remedy: available ? "" : `Build it for ${architecture}.` });
  visit([{ path: "/", element: <ExternalPanel workspace={workspace} agent={agent} /> }], "/", {
    "GET /api/v2/workspaces/w/external-agent/main/credentials": { command: "curl", agent_token: "secret" },
    "GET /api/v2/programs": [program("amd64", true), program("arm64", false), { ...program("amd64", false), name: "coder-windows-amd64.exe", os: "windows" }],
  });
  expect(await screen.findByRole("option", { name: "Linux, ARM, 64-bit (program missing)" })).toBeVisible();
  expect(screen.queryByText("This server has no program for that platform.")).toBeNull();
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "linux/arm64");
  expect(await screen.findByText("This server has no program for that platform.")).toBeVisible();
  expect(screen.getByText(/Build it for arm64/)).toBeVisible();
  expect(screen.getByText(/pipx install/)).toBeVisible();
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "windows/amd64");
  expect(await screen.findByText(/inside WSL/)).toBeVisible();
  expect(screen.queryByText(/pipx install/)).toBeNull(); // the wheel has no agent there
  await userEvent.selectOptions(screen.getByLabelText("Platform"), "linux/amd64");
  expect(screen.queryByText("This server has no program for that platform.")).toBeNull();
});
