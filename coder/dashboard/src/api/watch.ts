// One object kept current by server-sent events. The browser reconnects by itself after a lost connection, but gives
// up after a refusal (a proxy's 502 while the server restarts): that case is ours. Says whether it is connected.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { Workspace } from "./types";

const RETRY_MS = 2000;

export function useWorkspaceWatch(id: string | undefined, key: readonly unknown[]): boolean {
  const queries = useQueryClient();
  const [live, setLive] = useState(true); // until shown otherwise: opening is no loss
  const name = JSON.stringify(key);
  useEffect(() => {
    if (id === undefined) return;
    let source: EventSource;
    let timer: number | undefined;
    const open = () => {
      source = new EventSource(`/api/v2/workspaces/${id}/watch`);
      source.addEventListener("data", (event: MessageEvent<string>) => {
        queries.setQueryData<Workspace>(JSON.parse(name) as unknown[], JSON.parse(event.data) as Workspace);
      });
      source.onopen = () => setLive(true);
      source.onerror = () => {
        setLive(false);
        if (source.readyState === EventSource.CLOSED) timer = window.setTimeout(open, RETRY_MS);
      };
    };
    open();
    return () => {
      window.clearTimeout(timer);
      source.close();
    };
  }, [id, name, queries]);
  return live;
}
