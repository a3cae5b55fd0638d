// The agent's log as it is written. Reconnects from the last line seen.
import { useEffect, useState } from "react";

import { socketUrl } from "../api/client";
import type { WorkspaceAgentLog } from "../api/types";
import { useTail } from "./tail";

const KEPT = 2000;
const RECONNECT_MS = 1500;

export function AgentLog({ agent }: { agent: string }) {
  const lines = useAgentLog(agent);
  const box = useTail(lines.length);
  return (
    <section className="log" aria-label="Agent log">
      <h3>Agent log</h3>
      <div className="log-lines" role="log" aria-label="Lines of the agent log" data-testid="agent-log" tabIndex={0} ref={box}>
        {lines.length === 0 ? <p className="faint">Nothing yet. Lines appear here as the agent’s scripts write them.</p> : null}
        {lines.map((line) => (
          <div key={line.id} className={`log-line ${line.level}`}>
            <time dateTime={line.created_at}>{new Date(line.created_at).toLocaleTimeString()}</time>
            <span>{line.output}</span>
          </div>
        ))}
      </div>
    </section>
  );
}

function useAgentLog(agent: string): WorkspaceAgentLog[] {
  const [lines, setLines] = useState<WorkspaceAgentLog[]>([]);
  useEffect(() => {
    let last = 0;
    let socket: WebSocket | undefined;
    let timer: number | undefined;
    let closed = false;
    const open = () => {
      socket = new WebSocket(socketUrl(`/api/v2/workspaceagents/${agent}/logs?follow&after=${last}`));
      socket.onmessage = (event: MessageEvent<string>) => {
        const fresh = (JSON.parse(event.data) as WorkspaceAgentLog[]).filter((line) => line.id > last);
        for (const line of fresh) last = Math.max(last, line.id);
        setLines((old) => [...old, ...fresh].slice(-KEPT));
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
  }, [agent]);
  return lines;
}
