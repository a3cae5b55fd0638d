// Where a terminal's stream is: at this server, or at the workspace proxy that was chosen. A proxy knows nobody's session:
// it lets in who shows a ticket for this agent, which the server gives out for a minute.
import { post, socketUrl, withQuery } from "../../api/client";
import type { IssueReconnectingPTYSignedTokenResponse } from "../../api/types";

/** The parameter of the address a ticket travels in. */
const TICKET = "coder_signed_app_token_23db1dde";

/** `place` is the proxy's address, "" for this server. Rejects when the server gives no ticket. */
export async function streamAddress(
  place: string,
  agent: string,
  wanted: Record<string, string | number>,
): Promise<string> {
  const url = socketUrl(`${place}/api/v2/workspaceagents/${agent}/pty`);
  if (place === "") return withQuery(url, wanted);
  const { signed_token } = await post<IssueReconnectingPTYSignedTokenResponse>(
    "/api/v2/applications/reconnecting-pty-signed-token",
    { url, agentID: agent },
  );
  return withQuery(url, { ...wanted, [TICKET]: signed_token });
}
