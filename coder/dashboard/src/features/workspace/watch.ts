// A workspace, updated through its WebSocket.
import { useQueryClient } from "@tanstack/react-query";

import { setServerData } from "../../api/optimistic";
import { useSocket } from "../../api/socket";
import type { ServerSentEvent, Workspace } from "../../api/types";

export function useWorkspaceWatch(id: string | undefined, key: readonly unknown[]): void {
  const queries = useQueryClient();
  useSocket(id === undefined ? null : `/api/v2/workspaces/${id}/watch-ws`, {
    onMessage: (data) => {
      const event = data as ServerSentEvent;
      if (event.type !== "data") return;
      setServerData(queries, key, event.data as Workspace);
    },
  });
}
