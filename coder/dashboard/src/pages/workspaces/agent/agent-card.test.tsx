import { screen } from "@testing-library/react";
import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../../api/types";
import { SignedIn } from "../../../test/world";
import { visit } from "../../../test/world";
import { AgentCard } from "./AgentCard";

const workspace = {
  id: "w",
  name: "lab",
  owner_name: "ana",
  owner_id: "u",
  organization_id: "o",
  latest_build: { build_number: 3, resources: [] },
} as unknown as Workspace;
const agent = (status: WorkspaceAgent["status"]) =>
  ({
    id: "a",
    name: "main",
    status,
    lifecycle_state: "created",
    operating_system: "linux",
    architecture: "amd64",
    version: "",
    display_apps: [],
    apps: [],
    log_sources: [],
    scripts: [],
    troubleshooting_url: "https://docs.example.com/agents",
  }) as unknown as WorkspaceAgent;

it.each(["timeout", "disconnected"] as const)(
  "links an agent in state %s to its troubleshooting page",
  async (status) => {
    visit(
      [
        {
          element: <SignedIn bare />,
          children: [
            {
              path: "/",
              element: <AgentCard workspace={workspace} agent={agent(status)} external={false} />,
            },
          ],
        },
      ],
      "/",
      {
        "GET /api/v2/users/me": {
          id: "u",
          username: "ana",
          name: "",
          email: "",
          organization_ids: ["o"],
          roles: [],
        },
      },
    );
    expect(await screen.findByRole("link", { name: "Troubleshooting" })).toHaveAttribute(
      "href",
      "https://docs.example.com/agents",
    );
  },
);

it.each([
  ["connecting", true, /usually under a minute/],
  ["connecting", false, /Put coder-linux-amd64 there/],
  ["timeout", false, /Put coder-linux-amd64 there/],
] as const)(
  "explains an agent that does not connect: %s, program available: %s",
  async (status, available, message) => {
    visit(
      [
        {
          element: <SignedIn bare />,
          children: [
            {
              path: "/",
              element: <AgentCard workspace={workspace} agent={agent(status)} external={false} />,
            },
          ],
        },
      ],
      "/",
      {
        "GET /api/v2/users/me": {
          id: "u",
          username: "ana",
          name: "",
          email: "",
          organization_ids: ["o"],
          roles: [],
        },
        "GET /api/v2/programs": [
          {
            name: "coder-linux-amd64",
            os: "linux",
            architecture: "amd64",
            available,
            remedy: available ? "" : "Put coder-linux-amd64 there.",
          },
        ],
      },
    );
    expect(await screen.findByText(message)).toBeVisible();
    expect(screen.queryByText(/under a minute/) === null).toBe(!available);
  },
);
