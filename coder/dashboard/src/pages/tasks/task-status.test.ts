import { expect, it } from "vitest";

import { canPause, canResume, isLive, taskStatus } from "./task-status";

const stateOf = (state: string) => ({ state, timestamp: "", message: "", uri: "" }) as never;

it.each([
  ["active", null, "Ready"],
  ["active", stateOf("working"), "Working"],
  ["active", stateOf("idle"), "Waiting for you"],
  ["active", stateOf("complete"), "Done"],
  ["paused", stateOf("working"), "Paused"],
  ["error", null, "Error"],
  ["pending", null, "Pending"],
  ["initializing", null, "Starting"],
] as const)("shows %s and %j as %s", (status, current_state, text) => {
  expect(taskStatus({ status, current_state }).text).toBe(text);
});

it.each([
  ["active", true, true, false],
  ["paused", false, false, true],
  ["pending", false, false, false],
] as const)("%s: live %s, can be paused %s, resumed %s", (status, live, pause, resume) => {
  expect([isLive({ status }), canPause({ status }), canResume({ status })]).toEqual([
    live,
    pause,
    resume,
  ]);
});
