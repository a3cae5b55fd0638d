import { expect, it } from "vitest";

import type { ProvisionerJob, Workspace } from "../../api/types";
import { statusOf } from "./status";
import { stateOf } from "../provisioner/job-states";

const AT = "2026-01-01T00:00:00Z";

// A job's status and whether it was canceled -> the state to show.
it.each([
  ["failed", undefined, "failed"],
  ["failed", AT, "canceled"],
  ["canceled", AT, "canceled"],
  ["canceling", AT, "canceling"],
  ["succeeded", undefined, "succeeded"],
] as const)("shows %s, canceled at %s, as %s", (status, canceled_at, shown) => {
  const job = { status, ...(canceled_at ? { canceled_at } : {}) };
  expect(stateOf(job)).toBe(shown);
});

it.each([
  ["failed", "failed", AT, "canceled"],
  ["failed", "failed", undefined, "failed"],
  ["running", "succeeded", undefined, "running"],
] as const)("shows a workspace that is %s after a %s build, canceled at %s, as %s", (...row) => {
  const [status, job, canceled_at, shown] = row;
  const latest = { status, job: { status: job, canceled_at } as ProvisionerJob };
  expect(statusOf({ latest_build: latest } as Workspace)).toBe(shown);
});
