// The log of a build while it runs: stages as headings, lines below. Reconnects from the last line seen.
import { useEffect, useState } from "react";

import { socketUrl } from "../api/client";
import type { ProvisionerJobLog } from "../api/types";
import { useTail } from "./tail";

const RECONNECT_MS = 1500;

export function BuildLog({ build }: { build: string }) {
  const lines = useBuildLog(build);
  const box = useTail(lines.length);
  return (
    <section className="log" aria-label="Build log">
      <h3>Build log</h3>
      <div className="log-lines" role="log" aria-label="Lines of the build log" tabIndex={0} ref={box}>
        {lines.length === 0 ? <p className="faint">Waiting for a provisioner…</p> : null}
        {lines.map((line, index) => (
          <div key={line.id}>
            {line.stage === lines[index - 1]?.stage ? null : <div className="log-stage">{line.stage}</div>}
            {line.output ? <div className={`log-line ${line.log_level}`}><span>{line.output}</span></div> : null}
          </div>
        ))}
      </div>
    </section>
  );
}

function useBuildLog(build: string): ProvisionerJobLog[] {
  const [lines, setLines] = useState<ProvisionerJobLog[]>([]);
  useEffect(() => {
    let last = -1;
    let socket: WebSocket | undefined;
    let timer: number | undefined;
    let closed = false;
    const open = () => {
      socket = new WebSocket(socketUrl(`/api/v2/workspacebuilds/${build}/logs?follow&after=${last}`));
      socket.onmessage = (event: MessageEvent<string>) => {
        const line = JSON.parse(event.data) as ProvisionerJobLog;
        if (line.id <= last) return;
        last = line.id;
        setLines((old) => [...old, line]);
      };
      socket.onclose = (event) => {
        if (!closed && event.code !== 1000) timer = window.setTimeout(open, RECONNECT_MS);
      };
    };
    open();
    return () => {
      closed = true;
      window.clearTimeout(timer);
      socket?.close();
    };
  }, [build]);
  return lines;
}
