// One object kept current by server-sent events: the browser reconnects by itself.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";

import type { Workspace } from "./types";

export function useWorkspaceWatch(id: string | undefined, key: readonly unknown[]): void {
  const queries = useQueryClient();
  const name = JSON.stringify(key);
  useEffect(() => {
    if (id === undefined) return;
    const source = new EventSource(`/api/v2/workspaces/${id}/watch`);
    source.addEventListener("data", (event: MessageEvent<string>) => {
      queries.setQueryData<Workspace>(JSON.parse(name) as unknown[], JSON.parse(event.data) as Workspace);
    });
    return () => source.close();
  }, [id, name, queries]);
}
