import { screen, within } from "@testing-library/react";
import { expect, it } from "vitest";

import type {
  AgentDisconnect,
  AgentLight,
  AgentLights,
  LightValue,
  Workspace,
  WorkspaceAgent,
} from "../../../api/types";
import { SignedIn } from "../../../test/world";
import { Refusal, visit } from "../../../test/world";
import { AgentCard } from "./AgentCard";
import { ageOf, oldestFresh, STATES } from "./AgentHealth";

const NOW = new Date().toISOString();
const value = (
  name: string,
  text: string,
  status: LightValue["status"],
  age: number | null,
): LightValue => ({ name, value: text, status, at: age === null ? null : NOW, age_seconds: age });
const indicator = (status: AgentLight["status"], ...values: LightValue[]): AgentLight => ({
  status,
  values,
});
const indicators: AgentLights = {
  host: indicator(
    "bad",
    value("disk", "98 % of 40 GiB", "bad", 20),
    value("memory", "40 % of 8 GiB", "good", 20),
  ),
  agent: indicator("warning", value("version", "v2.1.0", "warning", 2)),
  path: indicator(
    "unknown",
    value("round trip", "", "unknown", null),
    value("loss", "0 %", "unknown", 400),
  ),
};
const disconnect: AgentDisconnect = {
  disconnected_at: new Date(Date.now() - 3_600_000).toISOString(),
  returned_at: new Date(Date.now() - 3_540_000).toISOString(),
  ended: "silent",
  cause: "slept",
  detail: "The machine slept for 60 s.",
  told: true,
  events: [],
};

const workspace = {
  id: "w",
  name: "lab",
  owner_name: "ana",
  owner_id: "u",
  organization_id: "o",
  template_id: "t",
  latest_build: { build_number: 3, resources: [] },
} as unknown as Workspace;
const agentOf = (status: WorkspaceAgent["status"]) =>
  ({
    id: "a",
    name: "main",
    status,
    lifecycle_state: "ready",
    operating_system: "linux",
    architecture: "amd64",
    version: "",
    display_apps: [],
    apps: [],
    log_sources: [],
    scripts: [],
  }) as unknown as WorkspaceAgent;
const show = (
  status: WorkspaceAgent["status"],
  external: boolean,
  answers: { lights: unknown; disconnects: unknown },
) =>
  visit(
    [
      {
        element: <SignedIn bare />,
        children: [
          {
            path: "/",
            element: (
              <AgentCard workspace={workspace} agent={agentOf(status)} external={external} />
            ),
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
      "GET /api/v2/workspaceagents/a/lights": answers.lights,
      "GET /api/v2/workspaceagents/a/disconnects": answers.disconnects,
    },
  );

it.each([
  ["an external machine", true, "connected"],
  ["an external machine", true, "disconnected"],
  ["any other agent", false, "connected"],
  ["any other agent", false, "disconnected"],
] as const)(
  "shows three indicators for %s (external %s, %s) with ages and labels",
  async (_, external, status) => {
    show(status, external, { lights: indicators, disconnects: [disconnect] });
    const health = within(await screen.findByRole("region", { name: "Health of main" }));
    const [host, agent, path] = ["Host", "Agent", "Path"].map((name) =>
      health.getByRole("group", { name }),
    );
    expect(host).toHaveTextContent(
      "HostCriticaldisk98 % of 40 GiBCriticalmemory40 % of 8 GiB20s ago",
    );
    expect(agent).toHaveTextContent("AgentWarningversionv2.1.0Warningnow");
    expect(path).toHaveTextContent("PathUnknownround tripno data yetloss0 %Unknown6m 40s ago");
    expect(await screen.findByText("The machine slept for 60 s.")).toBeVisible();
    expect(screen.getByText(/^Last disconnected/)).toHaveTextContent(
      "Last disconnected 1 hour ago, for 1m 0s.",
    );
  },
);

it("shows since when a machine is disconnected", async () => {
  show("disconnected", true, {
    lights: indicators,
    disconnects: [
      {
        ...disconnect,
        returned_at: null,
        detail: "The agent has not come back with its side of it.",
      },
    ],
  });
  expect(await screen.findByText(/^Disconnected \.$/)).toHaveTextContent(
    "Disconnected 1 hour ago. The agent has not come back with its side of it.",
  );
});

it("shows nothing if the server has no indicators or rejects the request", async () => {
  const page = show("connected", true, {
    lights: new Refusal(404, "Not found."),
    disconnects: new Refusal(404, "Not found."),
  });
  await screen.findByRole("article", { name: "Agent main" });
  await screen.findByText(/Reattach the machine/);
  expect(page.requests).toContain("GET /api/v2/workspaceagents/a/lights");
  expect(screen.queryByRole("region", { name: "Health of main" })).toBeNull();
  expect(screen.queryByText(/isconnected/)).toBeNull();
});

it("never shows unknown as healthy", () => {
  const [word, tone] = STATES.unknown;
  expect([word, tone]).toEqual(["Unknown", "idle"]);
  expect(new Set(Object.values(STATES).map(([name]) => name)).size).toBe(4);
  expect([0, 4, 5, 90, null].map((age_seconds) => ageOf({ age_seconds }))).toEqual([
    "now",
    "now",
    "5s ago",
    "1m 30s ago",
    "no data yet",
  ]);
});

it.each([
  [[20, 20], 20],
  [[2, 26], 26],
  [[20, null], 20],
  [[20, 400], 20],
  [[400, null], null],
  [[], null],
] as const)("shows the age of fresh readings among %j once: %j", (ages, expected) => {
  const values = ages.map((age, at) => value(`reading ${at}`, "1", "good", age));
  expect(oldestFresh(values)?.age_seconds ?? null).toBe(expected);
});
