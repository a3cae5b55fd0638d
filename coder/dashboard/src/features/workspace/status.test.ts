import { expect, it } from "vitest";

import type { Workspace, WorkspaceAgent } from "../../api/types";
import { AGENT_STATUS, healthProblemOf } from "./status";

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
