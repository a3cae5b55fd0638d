import { screen, waitFor, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { describe, expect, it } from "vitest";

import type { AgentLights } from "../../../api/types";
import { SignedIn, visit } from "../../../test/world";
import { attachScript, concerns, readingOf, wayOf, type Machine } from "./fleet";
import { FleetPage } from "./FleetPage";

const light = (name: string, value: string, status = "good") => ({
  status,
  values: [{ name, value, status, at: null, age_seconds: null }],
});
const lights = (way: string, disk: string, status = "good") =>
  ({
    host: light("disk", disk, status),
    agent: light("version", "v2.34.0"),
    path: light("way", way, way === "" ? "unknown" : "good"),
  }) as unknown as AgentLights;

describe("readings", () => {
  it.each([
    ["2 direct", "direct"],
    ["1 relayed, 2 direct", "relayed"],
    ["no peers connected", "idle"],
    ["", "unknown"],
  ])("way %j is %s", (way, expected) => expect(wayOf(lights(way, "")) as string).toBe(expected));

  it("says unknown for a missing reading", () => {
    expect(readingOf(null, "host", "disk")).toEqual({ text: "-", status: "unknown" });
    expect(readingOf(lights("", ""), "host", "disk").text).toBe("-");
    expect(readingOf(lights("", "40 %"), "host", "clock").status).toBe("unknown");
  });

  it.each([
    ["connected", lights("1 direct", "40 %"), []],
    ["connected", lights("", "97 %", "bad"), ["disk 97 %"]],
    ["timeout", null, ["not attached"]],
    ["disconnected", null, ["disconnected"]],
    ["connected", null, []],
  ])("concerns of a %s machine", (status, read, expected) =>
    expect(concerns({ agent: { status }, lights: read } as unknown as Machine)).toEqual(expected),
  );

  it("names each command of a script", () =>
    expect(attachScript([["one", "curl 1"]])).toBe("# one\ncurl 1\n"));
});

const machine = (name: string, status: string) => ({
  id: name,
  name,
  owner_id: "me",
  owner_name: "ana",
  organization_id: "o",
  latest_build: {
    status: "running",
    has_external_agent: true,
    resources: [
      {
        agents: [
          {
            id: `agent-${name}`,
            parent_id: null,
            name: "main",
            status,
            operating_system: "linux",
            architecture: "amd64",
            version: "",
          },
        ],
      },
    ],
  },
});

it("filters machines that need attention and rotates their tokens", async () => {
  const page = visit(
    [{ element: <SignedIn bare />, children: [{ path: "/fleet", element: <FleetPage /> }] }],
    "/fleet",
    {
      "GET /api/v2/users/me": { id: "me", username: "ana", roles: [], organization_ids: ["o"] },
      "GET /api/v2/workspaces": {
        workspaces: [machine("fine", "connected"), machine("gone", "disconnected")],
        count: 2,
      },
      "GET /api/v2/workspaceagents/agent-fine/lights": lights("1 direct", "40 %"),
      "POST /api/v2/workspaces/gone/external-agent/main/rotate-token": {
        command: "curl new",
        agent_token: "t",
      },
    },
  );
  const fine = await screen.findByRole("row", { name: /fine/ });
  await waitFor(() => expect(fine).toHaveTextContent("Direct"));
  expect(fine).toHaveTextContent("40 %");
  expect(screen.getByRole("row", { name: /gone/ })).toHaveTextContent("Unknown");
  await userEvent.click(screen.getByLabelText("Needs attention"));
  expect(screen.queryByRole("row", { name: /fine/ })).toBeNull();
  await userEvent.click(screen.getByLabelText("Select gone"));
  const bar = screen.getByRole("group", { name: "Selected machines" });
  await waitFor(() =>
    expect(within(bar).getByRole("button", { name: "Rotate tokens…" })).toBeEnabled(),
  );
  await userEvent.click(within(bar).getByRole("button", { name: "Rotate tokens…" }));
  await userEvent.click(await screen.findByTestId("confirm-button"));
  await waitFor(() =>
    expect(page.sent.map((request) => request.path)).toEqual([
      "/api/v2/workspaces/gone/external-agent/main/rotate-token",
    ]),
  );
});
