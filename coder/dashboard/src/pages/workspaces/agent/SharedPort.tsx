// A shared port: sharing level, protocol, expiry.
import { useQueryClient } from "@tanstack/react-query";
import { ExternalLink, X } from "lucide-react";

import { remove } from "../../../api/client";
import { serialized } from "../../../api/serialized";
import type { Workspace, WorkspaceAgent, WorkspaceAgentPortShare } from "../../../api/types";
import { IconButton } from "../../../ui/Button";
import { cx } from "../../../ui/cx";
import { useChoice } from "../../../ui/forms/choice";
import { SelectField } from "../../../ui/forms/Field";
import { toast } from "../../../ui/toast";
import {
  sendShare,
  sharesKey,
  queueKey,
  LEVELS,
  expiryText,
  KEPT,
  EXPIRIES,
  type Level,
  type Sharing,
  type End,
} from "./port-sharing";

interface SharedPortProps {
  workspace: Workspace;
  agent: WorkspaceAgent;
  share: WorkspaceAgentPortShare;
  levels: readonly (readonly [Level, string])[];
  mayShare: boolean;
  /** "" if ports cannot be opened in a browser. */
  address: string;
}

/**
 * Sharing level, protocol and expiry of a port. Each choice applies from the click on and the next
 * one builds on it: built on the server's last answer, a second change would undo the restriction
 * that the first one had just set.
 */
export function SharedPort({
  workspace,
  agent,
  share,
  levels,
  mayShare,
  address,
}: SharedPortProps) {
  const queries = useQueryClient();
  const { port } = share;
  const { value: now, choose } = useChoice<Sharing>(
    { level: share.share_level, protocol: share.protocol },
    {
      send: (next) => sendShare(workspace, agent, port, next),
      seen: sharesKey(workspace),
      failed: `Failed to update the share of port ${port}`,
    },
  );
  const end = () =>
    void serialized(queueKey(workspace, agent, port), () =>
      remove(`/api/v2/workspaces/${workspace.id}/port-share`, { agent_name: agent.name, port }),
    ).then(
      () => queries.invalidateQueries({ queryKey: sharesKey(workspace) }),
      (error: unknown) => toast.failed("Failed to stop sharing", error),
    );
  // A level that the template no longer allows is still the current one.
  const offered = levels.some(([level]) => level === now.level)
    ? levels
    : [...levels, ...LEVELS.filter(([level]) => level === now.level)];
  return (
    <div role="group" aria-label={`Port ${port}`} className="flex flex-col gap-1">
      <div className="flex min-h-7 items-center justify-between gap-2">
        {address ? (
          <a
            className="flex items-center gap-1 font-medium text-accent-text hover:underline"
            href={address}
            target="_blank"
            rel="noreferrer"
          >
            {port}
            <ExternalLink className="size-3.5" aria-hidden="true" />
          </a>
        ) : (
          <span className="font-medium">{port}</span>
        )}
        {mayShare ? (
          <IconButton size="sm" label={`Stop sharing port ${port}`} onClick={end}>
            <X />
          </IconButton>
        ) : (
          <span className="text-sm text-muted">
            {LEVELS.find(([level]) => level === share.share_level)?.[1]}
            {share.expires_at ? `, ${expiryText(share)}` : ""}
          </span>
        )}
      </div>
      {mayShare ? (
        <div
          className={cx(
            "grid grid-cols-[5.5rem_9.5rem_minmax(0,1fr)] gap-2",
            "max-sm:grid-cols-[6rem_minmax(0,1fr)] max-sm:[&>:last-child]:col-span-2",
          )}
        >
          <SelectField
            hideLabel
            label={`Protocol of port ${port}`}
            value={now.protocol}
            onChange={(scheme) =>
              choose({ level: now.level, protocol: scheme === "https" ? "https" : "http" })
            }
            options={[
              ["http", "HTTP"],
              ["https", "HTTPS"],
            ]}
          />
          <SelectField
            hideLabel
            label={`Sharing level of port ${port}`}
            value={now.level}
            onChange={(level) => choose({ level: level as Level, protocol: now.protocol })}
            options={offered}
          />
          <SelectField
            hideLabel
            label={`Expiry of the share of port ${port}`}
            value={now.end ?? KEPT}
            onChange={(next) =>
              choose({ level: now.level, protocol: now.protocol, end: next as End })
            }
            options={[[KEPT, expiryText(share)], ...EXPIRIES]}
          />
        </div>
      ) : null}
    </div>
  );
}
