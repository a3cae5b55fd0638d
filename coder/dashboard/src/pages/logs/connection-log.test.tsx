import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { SignedIn } from "../../test/world";
import { visit } from "../../test/world";
import { ConnectionLogPage } from "./ConnectionLogPage";

const AT = "2026-01-01T00:00:00Z";
const entry = (id: string, more: object) => ({
  id,
  type: "ssh",
  connect_time: AT,
  workspace_owner_username: "ana",
  workspace_name: "dev",
  agent_name: "main",
  ip: "",
  ...more,
});

it("shows no user for connections inside the workspace", async () => {
  visit(
    [{ element: <SignedIn bare />, children: [{ path: "/", Component: ConnectionLogPage }] }],
    "/",
    {
      "GET /api/v2/users/me": {
        id: "me",
        username: "ana",
        email: "",
        organization_ids: [],
        roles: [],
      },
      "GET /api/v2/organizations": [],
      "GET /api/v2/connectionlog": {
        count: 4,
        connection_logs: [
          entry("a", { ssh_info: { disconnect_time: AT, disconnect_reason: "", exit_code: 0 } }),
          entry("b", {
            ip: "10.0.0.1",
            ssh_info: {
              disconnect_time: "2026-01-01T00:01:05Z",
              disconnect_reason: "gone",
              exit_code: 1,
            },
          }),
          entry("c", {
            type: "workspace_app",
            web_info: { user: { username: "ben" }, slug_or_port: "code-server", status_code: 200 },
          }),
          entry("d", {
            type: "workspace_app",
            web_info: { user: { username: "ben" }, slug_or_port: "terminal", status_code: 200 },
          }),
        ],
      },
    },
  );
  const rows = within(await screen.findByRole("table", { name: "Connections" }))
    .getAllByRole("row")
    .slice(1)
    .map((row) => row.textContent);
  expect(rows[0]).toMatch(/^SSH to ana\/dev\.main-.*Endedwithin a second$/);
  expect(rows[1]).toMatch(/^SSH to ana\/dev\.main10\.0\.0\.1.*Ended with code 1after 1m 5s: gone$/);
  expect(rows[2]).toMatch(/^ben by App code-serverto ana\/dev\.main/);
  expect(rows[3]).toMatch(/^ben by Web terminal to ana\/dev\.main/);
});
