import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../api/types";
import { AGENT_STATUS, agentState, healthProblemOf, isUnattached } from "./status";

const running = (...agents: WorkspaceAgent["status"][]) =>
  ({
    health: { healthy: false },
    latest_build: {
      status: "running",
      resources: [{ agents: agents.map((status) => ({ status })) }],
    },
  }) as unknown as Workspace;

it.each([
  [["disconnected", "connecting"], "agent disconnected", "warn"],
  [["connecting", "connected"], "agent connecting", "busy"],
  [["timeout", "connecting"], "agent not attached", "warn"],
  [["connected"], "unhealthy", "warn"],
] as const)("with agents %j shows %s", (agents, words, tone) =>
  expect(healthProblemOf(running(...agents))).toEqual([words, tone]),
);

it("gives a connecting agent its own label's tone", () => {
  expect(healthProblemOf(running("connecting"))?.[1]).toBe(AGENT_STATUS.connecting[1]);
});

it("says that a running workspace has no agent, even a healthy one", () => {
  const workspace = { ...running(), health: { healthy: true } } as unknown as Workspace;
  expect(healthProblemOf(workspace)).toEqual(["no agent", "idle"]);
});

it.each([
  [["timeout"], true, true],
  [["connecting"], true, true],
  [["timeout"], false, false],
  [["connected"], true, false],
  [["disconnected"], true, false],
  [[], true, false],
] as const)("with agents %j, external %s: not attached is %s", (agents, external, unattached) => {
  const workspace = running(...agents);
  workspace.latest_build.has_external_agent = external;
  expect(isUnattached(workspace)).toBe(unattached);
});

it.each([
  ["connecting", true, undefined, "Not attached", "idle"],
  ["connecting", true, "2026-01-31T08:00:00Z", "Connecting", "busy"],
  ["connecting", false, undefined, "Connecting", "busy"],
  ["timeout", true, undefined, "Not attached", "idle"],
  ["connected", true, "2026-01-31T08:00:00Z", "Connected", "good"],
] as const)("%s, external %s, first connected %s: %s", (status, external, first, word, tone) => {
  const agent = { status, ...(first ? { first_connected_at: first } : {}) };
  expect(agentState(agent, external)).toEqual([word, tone]);
});
