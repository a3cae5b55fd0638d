// Labels and tones of job states. Workspaces have states of their own: a start build succeeds, then
// the workspace runs.
import type { ProvisionerJob } from "../../api/types";
import type { Tone } from "../../ui/Badge";

/**
 * The state to show. For the API a canceled job that ended with an error is "failed"; a program that was interrupted
 * often ends with one, and the user who canceled it is not told of a failure.
 */
export function stateOf(
  job: Pick<ProvisionerJob, "status" | "canceled_at">,
): ProvisionerJob["status"] {
  return job.status === "failed" && job.canceled_at ? "canceled" : job.status;
}

export const JOB_TONES: Record<ProvisionerJob["status"], Tone> = {
  pending: "busy",
  running: "busy",
  canceling: "warn",
  succeeded: "good",
  failed: "bad",
  canceled: "idle",
  unknown: "idle",
};
export const JOB_WORDS: Record<ProvisionerJob["status"], string> = {
  pending: "Pending",
  running: "Running",
  canceling: "Canceling",
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Canceled",
  unknown: "Unknown",
};
