"""The routes of workspace proxies themselves. `coordinate` is a link (`links/proxies.py`)."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.api.proxies import (
    CryptoKeysResponse,
    DeregisterWorkspaceProxyRequest,
    IssueSignedAppTokenResponse,
    IssueTokenRequest,
    RegisterWorkspaceProxyRequest,
    ReportAppStatsRequest,
)
from coder.coderd.http.auth import context
from coder.coderd.http.json import read_body, reply
from coder.coderd.services import proxy_calls
from coder.coderd.services.proxy_calls import ProxyCaller
from coder.coderd.services.proxy_token import TOKEN_HEADER

blueprint = Blueprint("proxy_calls", __name__, url_prefix="/api/v2/workspaceproxies/me")


async def _proxy() -> ProxyCaller:
    return await proxy_calls.authenticate_proxy(context(), request.headers.get(TOKEN_HEADER, ""))


@blueprint.post("/register")
async def post_register() -> Response:
    caller = await _proxy()
    body = await read_body(RegisterWorkspaceProxyRequest)
    return reply(await proxy_calls.register(context(), caller, body), 201)


@blueprint.post("/deregister")
async def post_deregister() -> Response:
    caller = await _proxy()
    await proxy_calls.deregister(context(), caller, await read_body(DeregisterWorkspaceProxyRequest))
    return Response(b"", 204)


@blueprint.get("/crypto-keys")
async def get_crypto_keys() -> Response:
    await _proxy()
    keys = await proxy_calls.crypto_keys(context(), request.args.get("feature", ""))
    return reply(CryptoKeysResponse(crypto_keys=keys))


@blueprint.post("/issue-signed-app-token")
async def post_issue_token() -> Response:
    await _proxy()
    body = await read_body(IssueTokenRequest)
    token = await proxy_calls.issue_signed_token(context(), body)
    return reply(IssueSignedAppTokenResponse(signed_token_str=token), 201)


@blueprint.post("/app-stats")
async def post_app_stats() -> Response:
    await _proxy()
    body = await read_body(ReportAppStatsRequest)
    await proxy_calls.report_stats(context(), body.stats)
    return Response(b"", 204)
