import { expect, it } from "vitest";

import { canPause, canResume, isLive, taskStatus } from "./task-status";

const said = (state: string) => ({ state, timestamp: "", message: "", uri: "" }) as never;

it.each([
  ["active", null, "Ready"],
  ["active", said("working"), "Working"],
  ["active", said("idle"), "Waiting for you"],
  ["active", said("complete"), "Done"],
  ["paused", said("working"), "Paused"],
  ["error", null, "Error"],
  ["pending", null, "Waiting"],
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
