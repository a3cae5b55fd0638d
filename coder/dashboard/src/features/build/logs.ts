// Logs that grow while they are read. Each connection resumes after the last line received, so that
// nothing is repeated and a lost connection loses nothing. Lines are delivered once per animation
// frame, however many arrive.
import { useEffect, useState } from "react";

import { openSocket } from "../../api/socket";
import type { ProvisionerJobLog, WorkspaceAgentLog } from "../../api/types";

const KEPT = 50_000;

function useLines<T extends { id: number }>(
  path: string | null,
): { lines: readonly T[]; ended: boolean } {
  const [lines, setLines] = useState<readonly T[]>([]);
  const [ended, setEnded] = useState(false);
  useEffect(() => {
    setLines([]);
    setEnded(false);
    if (path === null) return;
    let last = 0;
    let waiting: T[] = [];
    let frame = 0;
    const flush = () => {
      frame = 0;
      const fresh = waiting;
      waiting = [];
      setLines((old) => [...old, ...fresh].slice(-KEPT));
    };
    const close = openSocket(() => `${path}${path.includes("?") ? "&" : "?"}follow&after=${last}`, {
      onMessage: (data) => {
        for (const line of (Array.isArray(data) ? data : [data]) as T[]) {
          if (line.id <= last) continue;
          last = line.id;
          waiting.push(line);
        }
        if (waiting.length > 0) frame ||= window.requestAnimationFrame(flush);
      },
      onEnd: () => setEnded(true),
    });
    return () => {
      window.cancelAnimationFrame(frame);
      close();
    };
  }, [path]);
  return { lines, ended };
}

export const useBuildLog = (build: string | null) =>
  useLines<ProvisionerJobLog>(build && `/api/v2/workspacebuilds/${build}/logs`);
export const useVersionLog = (version: string | null) =>
  useLines<ProvisionerJobLog>(version && `/api/v2/templateversions/${version}/logs`);
export const useAgentLog = (agent: string | null) =>
  useLines<WorkspaceAgentLog>(agent && `/api/v2/workspaceagents/${agent}/logs`);
