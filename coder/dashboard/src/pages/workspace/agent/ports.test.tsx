import { screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { visit } from "../../../test/world";
import { PortsButton } from "./Ports";

const workspace = { id: "w", name: "dev", owner_name: "ana", template_id: "t" } as Workspace;
const agent = { id: "a", name: "main" } as WorkspaceAgent;

it("where ports open in no browser, asks for no protocol and shows the command with a port that listens", async () => {
  visit([{ path: "/", element: <PortsButton workspace={workspace} agent={agent} /> }], "/", {
    "GET /api/v2/workspaceagents/a/listening-ports": { ports: [{ port: 5173, process_name: "node" }] },
    "GET /api/v2/workspaces/w/port-share": { shares: [] },
    "GET /api/v2/templates/t": { max_port_share_level: "public" },
  });
  await userEvent.click(await screen.findByRole("button", { name: /Open ports/ }));
  expect(await screen.findByText("coder port-forward dev --tcp 5173")).toBeVisible();
  expect(screen.queryByLabelText("Protocol of the listening ports")).toBeNull();
});
