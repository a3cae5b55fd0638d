// Labels and tones of job states. Workspaces have states of their own: a start build succeeds, then
// the workspace runs.
import type { ProvisionerJob } from "../../api/types";
import type { Tone } from "../../ui/Badge";

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
