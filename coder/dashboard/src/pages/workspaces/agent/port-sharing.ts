// Sharing a port: levels, expiry, and the requests, which are sent one after the other.
import { post } from "../../../api/client";
import { serialized } from "../../../api/serialized";
import type { Workspace, WorkspaceAgent, WorkspaceAgentPortShare } from "../../../api/types";
import { ago } from "../../../lib/time";
import { type Protocol } from "../../../features/workspace/port-address";

export type Level = WorkspaceAgentPortShare["share_level"];

export const LEVELS: readonly (readonly [Level, string])[] = [
  ["organization", "Organization"],
  ["authenticated", "Authenticated users"],
  ["public", "Public"],
];
export const ORDER: readonly Level[] = ["owner", "organization", "authenticated", "public"];

const HOUR_MS = 3_600_000;
export const EXPIRIES = [
  ["never", "Never"],
  ["1", "In 1 hour"],
  ["8", "In 8 hours"],
  ["24", "In 1 day"],
  ["168", "In 1 week"],
] as const;
export type End = (typeof EXPIRIES)[number][0];
export const KEPT = "";

function expiryOf(end: End): string | null {
  return end === "never" ? null : new Date(Date.now() + Number(end) * HOUR_MS).toISOString();
}

export function expiryText(share: WorkspaceAgentPortShare): string {
  return share.expires_at ? `Expires ${ago(share.expires_at)}` : "Never expires";
}

/** Without `end`, the current expiry stays. */
export interface Sharing {
  level: Level;
  protocol: Protocol;
  end?: End;
}

export type Send = (port: number, sharing: Sharing) => Promise<unknown>;

export const sharesKey = (workspace: Workspace) => ["workspaces", workspace.id, "port-share"];

export const queueKey = (workspace: Workspace, agent: WorkspaceAgent, port: number) =>
  `the share of ${workspace.id} ${agent.name} ${port}`;

/**
 * The server may apply two concurrent changes of one port in either order, so they are sent one
 * after the other.
 */
export function sendShare(
  workspace: Workspace,
  agent: WorkspaceAgent,
  port: number,
  { level, protocol, end }: Sharing,
): Promise<unknown> {
  return serialized(queueKey(workspace, agent, port), () =>
    post(`/api/v2/workspaces/${workspace.id}/port-share`, {
      agent_name: agent.name,
      port,
      share_level: level,
      protocol,
      ...(end === undefined ? {} : { expires_at: expiryOf(end) }),
    }),
  );
}
