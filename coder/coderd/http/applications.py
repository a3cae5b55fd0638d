"""Applications, as far as the API goes: their host, signing in to one, tickets for terminals."""

from __future__ import annotations

from urllib.parse import urlencode

from quart import Blueprint, Response, request

from coder.api.agents import IssueReconnectingPTYSignedTokenRequest, IssueReconnectingPTYSignedTokenResponse
from coder.api.deployment import AppHostResponse
from coder.coderd.http.auth import authenticated, context, count_request, optional_caller, subject
from coder.coderd.http.json import read_body, reply
from coder.coderd.http.query import path_uuid
from coder.coderd.services import applications
from coder.coderd.services.credentials import SIGNED_OUT

blueprint = Blueprint("applications", __name__, url_prefix="/api/v2/applications")


@blueprint.get("/host")
@authenticated
async def get_host() -> Response:
    return reply(AppHostResponse(host=applications.app_host(context())))


@blueprint.get("/auth-redirect")
async def get_auth_redirect() -> Response:
    """For browsers: whoever is signed out signs in first and comes back."""
    caller = await optional_caller()
    count_request(caller)
    if caller is None:
        query = request.query_string.decode("latin-1")
        back = request.path + (f"?{query}" if query else "")
        login = f"{context().access_url}/login?{urlencode({'message': SIGNED_OUT, 'redirect': back})}"
        return _redirect(303, login)
    return _redirect(307, await applications.hand_over(context(), caller, request.args.get("redirect_uri", "")))


def _redirect(status: int, location: str) -> Response:
    response = Response(b"", status, {"Location": location}, content_type="text/html; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"  # the address holds a key
    return response


@blueprint.post("/reconnecting-pty-signed-token")
@authenticated
async def post_terminal_token() -> Response:
    body = await read_body(IssueReconnectingPTYSignedTokenRequest)
    agent_id = path_uuid(body.agentID)
    token = await applications.issue_terminal_token(context(), subject(), body.url, agent_id)
    return reply(IssueReconnectingPTYSignedTokenResponse(signed_token=token))
