"""The routes of workspace proxies themselves. `coordinate` is a link (`rpc_endpoints/proxies.py`)."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.api.proxies import sealed_keys
from coder.api.proxies.proxies import (
    CryptoKeysResponse,
    DeregisterWorkspaceProxyRequest,
    IssueSignedAppTokenResponse,
    IssueTokenRequest,
    MayStayRequest,
    MayStayResponse,
    RegisterWorkspaceProxyRequest,
    RegisterWorkspaceProxyResponse,
    ReportAppStatsRequest,
)
from coder.api.proxies.proxy_token import TOKEN_HEADER
from coder.appproxy.apps.app_refusals import AppRefusedError
from coder.appproxy.http.rate_limits import counted
from coder.coderd.http.server.auth import context, count_request, known_as
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.route import route
from coder.coderd.services.proxies import proxy_authentication, proxy_calls, proxy_registration
from coder.coderd.services.proxies.proxy_authentication import ProxyCaller
from coder.coderd.services.proxies.proxy_pages import browser_answer
from coder.domain.access.route_scopes import PROXY

blueprint = Blueprint("proxy_calls", __name__, url_prefix="/api/v2/workspaceproxies/me")


async def _proxy(*, for_visitor: bool = False) -> ProxyCaller:
    """Return the calling proxy. Calls for a visitor are not its own requests: it counts its visitors itself."""
    authentication = proxy_authentication.authenticate_proxy(context(), request.headers.get(TOKEN_HEADER, ""))
    proxy = await counted(authentication, lambda result: "" if for_visitor else f"proxy {result.row.id}", count_request)
    known_as(f"proxy {proxy.row.id}")
    return proxy


@route(
    blueprint,
    "POST",
    "/register",
    scope=PROXY,
    body=RegisterWorkspaceProxyRequest,
    answers=RegisterWorkspaceProxyResponse,
    status=201,
)
async def post_register() -> Response:
    """Record a living process of a proxy and return its settings."""
    caller = await _proxy()
    body = await read_body(RegisterWorkspaceProxyRequest)
    algorithms = request.headers.get(sealed_keys.HEADER, "")
    version = sealed_keys.process_version(body.version, request.headers.get("User-Agent", ""), algorithms)
    return reply(await proxy_registration.register(context(), caller, body, version), 201)


@route(blueprint, "POST", "/deregister", scope=PROXY, body=DeregisterWorkspaceProxyRequest, status=204, refuses=(404,))
async def post_deregister() -> Response:
    """Deregister a process of the proxy."""
    caller = await _proxy()
    await proxy_registration.deregister(context(), caller, await read_body(DeregisterWorkspaceProxyRequest))
    return Response(b"", 204)


@route(
    blueprint, "GET", "/crypto-keys", scope=PROXY, query={"feature": str}, answers=CryptoKeysResponse, refuses=(400,)
)
async def get_crypto_keys() -> Response:
    """Return the keys of one feature."""
    await _proxy()
    keys = await proxy_calls.crypto_keys(context(), request.args.get("feature", ""))
    return reply(CryptoKeysResponse(crypto_keys=keys))


@route(
    blueprint,
    "POST",
    "/issue-signed-app-token",
    scope=PROXY,
    body=IssueTokenRequest,
    answers=IssueSignedAppTokenResponse,
    status=201,
    refuses=(403, 404, 502),
)
async def post_issue_token() -> Response:
    """Issue a ticket for a visitor's request at a proxy; a proxy that does not request JSON gets refusals as pages."""
    await _proxy(for_visitor=True)
    body = await read_body(IssueTokenRequest)
    if "application/json" in request.headers.get("Accept", ""):
        return reply(IssueSignedAppTokenResponse(await proxy_calls.issue_signed_token(context(), body)), 201)
    try:
        token = await proxy_calls.open_for_visitor(context(), body)
    except AppRefusedError as error:
        authentication = browser_answer(context().access_url, body, error)
        return Response(authentication.body, authentication.status, dict(authentication.headers))
    return reply(IssueSignedAppTokenResponse(signed_token_str=token), 201)


@route(blueprint, "POST", "/may-stay", scope=PROXY, body=MayStayRequest, answers=MayStayResponse)
async def post_may_stay() -> Response:
    """Return whether a visitor with a ticket alone would be admitted now. A proxy calls it while a stream is open."""
    await _proxy(for_visitor=True)
    body = await read_body(MayStayRequest)
    return reply(MayStayResponse(may_stay=await proxy_calls.may_stay(context(), body)))


@route(blueprint, "POST", "/app-stats", scope=PROXY, body=ReportAppStatsRequest, status=204)
async def post_app_stats() -> Response:
    """Record the use of applications that passed through a proxy."""
    await _proxy()
    body = await read_body(ReportAppStatsRequest)
    await proxy_calls.report_stats(context(), body.stats)
    return Response(b"", 204)
