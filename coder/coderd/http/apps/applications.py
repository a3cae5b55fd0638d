"""Applications in the API: their host, sign-in to one, tickets for terminals."""

from __future__ import annotations

from urllib.parse import urlencode

from quart import Blueprint, Response, request

from coder.api.agents.agent_streams import (
    IssueReconnectingPTYSignedTokenRequest,
    IssueReconnectingPTYSignedTokenResponse,
)
from coder.api.site.deployment import AppHostResponse
from coder.coderd.http.server.auth import context, optional_caller, remote_ip, subject
from coder.coderd.http.server.declarations import NOTHING
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.apps import session_handover
from coder.domain.access.credentials import SIGNED_OUT
from coder.domain.access.route_scopes import ANY_KEY
from coder.domain.foundation.web_addresses import host_of_origin

blueprint = Blueprint("applications", __name__, url_prefix="/api/v2/applications")


@route(blueprint, "GET", "/host", scope=ANY_KEY, answers=AppHostResponse)
async def get_host() -> Response:
    return reply(AppHostResponse(host=session_handover.app_host(context())))


@route(
    blueprint,
    "GET",
    "/auth-redirect",
    scope="api_key:create",
    asks_itself=True,
    query={"redirect_uri": str},
    status=303,
    others={307: NOTHING},
)
async def get_auth_redirect() -> Response:
    """Redirect a browser; a signed-out user signs in first and returns."""
    caller = await optional_caller()
    if caller is None:
        query = request.query_string.decode("latin-1")
        back = request.path + (f"?{query}" if query else "")
        login = f"{context().access_url}/login?{urlencode({'message': SIGNED_OUT, 'redirect': back})}"
        return _redirect(303, login)
    return _redirect(
        307, await session_handover.create_redirect(context(), caller, request.args.get("redirect_uri", ""))
    )


def _redirect(status: int, location: str) -> Response:
    response = Response(b"", status, {"Location": location}, content_type="text/html; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"  # the address contains a key
    return response


@route(
    blueprint,
    "POST",
    "/reconnecting-pty-signed-token",
    scope="workspace:ssh",
    body=IssueReconnectingPTYSignedTokenRequest,
    answers=IssueReconnectingPTYSignedTokenResponse,
)
async def post_terminal_token() -> Response:
    """Issue a ticket for one agent's terminal, for a host without a session (a proxy)."""
    body = await read_body(IssueReconnectingPTYSignedTokenRequest)
    agent_id = path_uuid(body.agentID)
    ctx, visitor = context(), subject()
    token = await session_handover.issue_terminal_token(ctx, visitor, body.url, agent_id)
    if host_of_origin(body.url) != host_of_origin(ctx.access_url):
        # A proxy carries this terminal: the server sees its user here only.
        agent_place = await load_agent(ctx, visitor, agent_id, "ssh")
        user_agent = request.headers.get("User-Agent", "")
        await ctx.services.edge.app_usage.log_terminal(agent_place, visitor.user_id, remote_ip(), user_agent)
    return reply(IssueReconnectingPTYSignedTokenResponse(signed_token=token))
