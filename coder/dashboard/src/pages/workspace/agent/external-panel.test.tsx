import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { visit } from "../../../test/world";
import { AttachAgain } from "./ExternalPanel";

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
