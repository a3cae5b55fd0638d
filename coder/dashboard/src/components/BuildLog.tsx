// The log of a build while it runs: stages as headings, lines below.
import { useEffect, useState } from "react";

import { socketUrl } from "../api/client";
import type { ProvisionerJobLog } from "../api/types";

export function BuildLog({ build }: { build: string }) {
  const [lines, setLines] = useState<ProvisionerJobLog[]>([]);
  useEffect(() => {
    const socket = new WebSocket(socketUrl(`/api/v2/workspacebuilds/${build}/logs?follow&after=-1`));
    socket.onmessage = (event: MessageEvent<string>) => {
      const line = JSON.parse(event.data) as ProvisionerJobLog;
      setLines((old) => [...old, line]);
    };
    return () => socket.close();
  }, [build]);
  let stage = "";
  return (
    <section className="log" aria-label="Build log">
      <h3>Build log</h3>
      <div className="log-lines" role="log">
        {lines.map((line) => {
          const heading = line.stage === stage ? null : <div className="log-stage">{line.stage}</div>;
          stage = line.stage;
          return (
            <div key={line.id}>
              {heading}
              {line.output ? <div className={`log-line ${line.log_level}`}><span>{line.output}</span></div> : null}
            </div>
          );
        })}
      </div>
    </section>
  );
}
