// Upgrades of machines' agents to the server's program: each is requested, then followed until it
// has ended. An agent upgrades once it is idle, which may take days: it needs no page for that.
import { get, post, reasonOf } from "../../../api/client";
import type { AgentUpgrade } from "../../../api/types";
import type { Tone } from "../../../ui/Badge";
import type { Machine } from "./fleet";

export interface UpgradeProgress {
  tone: Tone;
  text: string;
  ended: boolean;
}

/** Requests without an answer, while the program starts, before the upgrade counts as failed. */
const MOST_UNANSWERED = 60;

const without = (version: string) => version.split("+")[0];

/** What a state means; undefined for a program that is the server's. */
export function progressOf(upgrade: AgentUpgrade): UpgradeProgress {
  const { state, detail, version, server_version } = upgrade;
  switch (state) {
    case "checking":
      return { tone: "busy", text: "Checking", ended: false };
    case "queued":
      return { tone: "busy", text: "The download is queued", ended: false };
    case "downloading":
      return { tone: "busy", text: "Downloading", ended: false };
    case "restarting":
      return { tone: "busy", text: "Restarting", ended: false };
    case "waiting":
      return { tone: "busy", text: `Waiting for the end of: ${detail}`, ended: false };
    case "watching":
      return without(version) === without(server_version)
        ? { tone: "good", text: `Upgraded: ${version}`, ended: true }
        : { tone: "idle", text: `Keeps ${version}, which is newer than the server`, ended: true };
    case "failed":
      return { tone: "bad", text: `Failed, and retried later: ${detail}`, ended: true };
    case "refused":
      return { tone: "bad", text: `The server’s program was refused: ${detail}`, ended: true };
    case "disabled":
      return {
        tone: "bad",
        text: "It does not upgrade itself. Run its attach command again.",
        ended: true,
      };
    case "unsupported":
      return {
        tone: "bad",
        text: "It is too old to be upgraded from here. Run its attach command again.",
        ended: true,
      };
  }
}

export interface UpgradeRun {
  onProgress: (progress: UpgradeProgress) => void;
  signal: AbortSignal;
  /** Resolves before the next request for the state. */
  pause: () => Promise<void>;
}

/** Upgrade one machine; resolves when its upgrade has ended, or the page no longer follows it. */
export async function upgradeMachine(machine: Machine, run: UpgradeRun): Promise<void> {
  const path = `/api/v2/workspaceagents/${machine.agent.id}`;
  const failed = (text: string) => run.onProgress({ tone: "bad", text, ended: true });
  run.onProgress({ tone: "busy", text: "Requested", ended: false });
  try {
    await post<AgentUpgrade>(`${path}/upgrade`);
  } catch (error) {
    failed(reasonOf(error));
    return;
  }
  let unanswered = 0;
  for (;;) {
    await run.pause();
    if (run.signal.aborted) return;
    try {
      const progress = progressOf(await get<AgentUpgrade>(`${path}/upgrade`));
      unanswered = 0;
      run.onProgress(progress);
      if (progress.ended) return;
    } catch (error) {
      unanswered += 1;
      if (unanswered >= MOST_UNANSWERED) {
        failed(`It did not return: ${reasonOf(error)}`);
        return;
      }
      run.onProgress({ tone: "busy", text: "Restarting", ended: false });
    }
  }
}
