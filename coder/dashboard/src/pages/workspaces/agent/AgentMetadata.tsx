// Metadata of an agent as defined by its template: live, with errors and stale values.
import { useState } from "react";

import { useSocket } from "../../../api/socket";
import type { ServerSentEvent, WorkspaceAgent, WorkspaceAgentMetadata } from "../../../api/types";
import { cx } from "../../../ui/cx";
import { counted } from "../../../lib/words";

export function AgentMetadata({ agent }: { agent: WorkspaceAgent }) {
  const [items, setItems] = useState<readonly WorkspaceAgentMetadata[]>(agent.metadata ?? []);
  useSocket(`/api/v2/workspaceagents/${agent.id}/watch-metadata-ws`, {
    onMessage: (data) => {
      const event = data as ServerSentEvent;
      if (event.type === "data" && Array.isArray(event.data))
        setItems(event.data as WorkspaceAgentMetadata[]);
    },
  });
  if (items.length === 0) return null;
  return (
    <dl aria-label="Metadata" className="flex flex-wrap gap-x-8 gap-y-3">
      {items.map((item) => {
        const stale =
          item.description.interval > 0 &&
          item.result.age > item.description.interval * 2 + item.description.timeout;
        return (
          <div key={item.description.key} className="min-w-20">
            <dt className="text-sm text-muted">{item.description.display_name}</dt>
            <dd
              className={cx(
                "max-w-64 truncate font-medium",
                item.result.error ? "text-bad" : stale && "text-muted",
              )}
              title={
                item.result.error ||
                (stale ? `Measured ${counted(item.result.age, "second")} ago.` : item.result.value)
              }
            >
              {item.result.error ? `failed: ${item.result.error}` : item.result.value.trim() || "-"}
              {stale ? <span className="text-xs font-normal"> (stale)</span> : null}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
