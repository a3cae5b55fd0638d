// The address of a terminal's stream: this server, or the chosen workspace proxy. A proxy knows no
// sessions: it requires a ticket for this agent, which the server issues for a minute.
import { post, socketUrl, withQuery } from "../../api/client";
import type { IssueReconnectingPTYSignedTokenResponse } from "../../api/types";

/** The query parameter that carries the ticket. */
const TICKET = "coder_signed_app_token_23db1dde";

/** `place` is the proxy's address, "" for this server. Rejects if the server issues no ticket. */
export async function streamAddress(
  base: string,
  agent: string,
  params: Record<string, string | number>,
): Promise<string> {
  const url = socketUrl(`${base}/api/v2/workspaceagents/${agent}/pty`);
  if (base === "") return withQuery(url, params);
  const { signed_token } = await post<IssueReconnectingPTYSignedTokenResponse>(
    "/api/v2/applications/reconnecting-pty-signed-token",
    { url, agentID: agent },
  );
  return withQuery(url, { ...params, [TICKET]: signed_token });
}
