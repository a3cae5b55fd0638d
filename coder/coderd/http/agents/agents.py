"""Agents: /api/v2/workspaceagents, for users by session and for agents (`me`) by their token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from quart import Blueprint, Response, g, request, websocket

from coder.api.agents.agent_connection import AgentConnectionInfo
from coder.api.agents.agent_ports import WorkspaceAgentListeningPortsResponse
from coder.api.agents.agent_streams import WorkspaceAgentLog
from coder.api.agents.agents import WorkspaceAgent, WorkspaceAgentLogSource
from coder.api.base.refusals import Invalid, Unauthenticated
from coder.api.base.struct import ApiStruct
from coder.api.login.external_auth import AgentAuth, AgentGitSSHKey
from coder.api.proxies.proxy_token import TOKEN_HEADER
from coder.appproxy.http.rate_limits import counted
from coder.coderd.http.provisioning.job_logs import read_after, wants_follow, wants_text
from coder.coderd.http.server.auth import context, count_request, credentials, known_as, optional_caller, subject
from coder.coderd.http.server.declarations import EVENTS, TEXT
from coder.coderd.http.server.json import read_body, reply
from coder.coderd.http.server.query import go_int, path_uuid
from coder.coderd.http.server.route import WEBSOCKET, route
from coder.coderd.http.server.streams import (
    UpgradeRefusal,
    events_over_websocket,
    needs_upgrade,
    over_websocket,
    sse,
    while_allowed,
)
from coder.coderd.services.agents import agent_access, agent_containers, agent_http, agent_logs, agents, app_statuses
from coder.coderd.services.agents.agent_access import CurrentAgent
from coder.coderd.services.agents.agent_logs import AgentLogLine
from coder.coderd.services.agents.app_statuses import AppReport
from coder.coderd.services.agents.instance_identity import token_of
from coder.coderd.services.login import provider_tokens
from coder.coderd.services.network.derp_map import connection_info
from coder.coderd.services.network.stream_http import AgentAnswer
from coder.coderd.services.proxies.proxy_authentication import authenticate_proxy
from coder.coderd.services.workspaces import agent_streams, prebuild_claims
from coder.domain.access.route_scopes import AGENT, OPTIONAL, PUBLIC
from coder.domain.foundation.search import parse_rfc3339

blueprint = Blueprint("agents", __name__, url_prefix="/api/v2/workspaceagents")

P = ParamSpec("P")
T = TypeVar("T")


class _Line(ApiStruct):
    created_at: str
    output: str
    level: str


class _Logs(ApiStruct):
    log_source_id: UUID
    logs: list[_Line]


class _AwsIdentity(ApiStruct):
    signature: str = ""
    document: str = ""
    agent_name: str = ""


class _AzureIdentity(ApiStruct):
    signature: str = ""
    encoding: str = ""
    agent_name: str = ""


class _GoogleIdentity(ApiStruct):
    json_web_token: str = ""
    agent_name: str = ""


class _SessionToken(ApiStruct):
    session_token: str


class _Source(ApiStruct):
    id: UUID
    display_name: str
    icon: str


class _AppStatus(ApiStruct):
    app_slug: str
    state: str
    message: str
    uri: str


def by_agent(view: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Let only requests with a current agent's token through; `current_agent()` returns that agent."""

    @wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        authentication = agent_access.authenticate_agent(context(), credentials())
        g.agent = await counted(authentication, lambda result: f"agent {result.agent.id}", count_request)
        # Not the owner's own account: a workspace that sends too much must not block the owner, who can repair it.
        known_as(f"agents of {g.agent.owner_id}")
        return await view(*args, **kwargs)

    return guarded


def current_agent() -> CurrentAgent:
    agent: CurrentAgent = g.agent
    return agent


def _empty_response() -> Response:
    # Upstream encodes "no body" as JSON.
    return reply(None)


@route(blueprint, "GET", "/connection", scope=OPTIONAL, answers=AgentConnectionInfo, refuses=(401,))
async def get_generic_connection() -> Response:
    """Return the connection information of `/workspaceagents/{id}/connection`, which a client needs before it dials."""
    proxy_token = request.headers.get(TOKEN_HEADER, "")
    if proxy_token:
        await authenticate_proxy(context(), proxy_token)
    elif await optional_caller() is None:
        raise Unauthenticated("API key or external proxy authentication required, but none provided")
    return reply(connection_info(context()))


@route(blueprint, "PATCH", "/me/logs", scope=AGENT, body=_Logs)
@by_agent
async def patch_logs() -> Response:
    """Store lines and wake followers."""
    body = await read_body(_Logs)
    now = context().clock.now()
    lines = [AgentLogLine(parse_rfc3339(line.created_at) or now, line.output, line.level) for line in body.logs]
    await agent_logs.append_logs(context(), current_agent(), body.log_source_id, lines)
    return _empty_response()


@route(blueprint, "POST", "/me/log-source", scope=AGENT, body=_Source, answers=WorkspaceAgentLogSource, status=201)
@by_agent
async def post_log_source() -> Response:
    """Create a log source; repeating the request changes nothing."""
    body = await read_body(_Source)
    source = await agent_logs.add_log_source(context(), current_agent(), body.id, body.display_name, body.icon)
    return reply(source, 201)


@route(blueprint, "GET", "/me/gitsshkey", scope=AGENT, answers=AgentGitSSHKey, refuses=(403, 404))
@by_agent
async def get_git_ssh_key() -> Response:
    """Return the owner's key pair, private half included: it is used inside the owner's own workspace."""
    return reply(await agents.get_git_ssh_key(context(), current_agent()))


@route(blueprint, "PATCH", "/me/app-status", scope=AGENT, body=_AppStatus)
@by_agent
async def patch_app_status() -> Response:
    body = await read_body(_AppStatus)
    report = AppReport(body.app_slug, body.state, body.message, body.uri)
    await app_statuses.report_app_status(context(), current_agent(), report)
    return _empty_response()


@route(
    blueprint,
    "GET",
    "/me/external-auth",
    scope=AGENT,
    query={"id": str, "listen": str, "match": str},
    answers=AgentAuth,
    refuses=(400, 404, 408, 409),
)
@by_agent
async def get_external_auth() -> Response:
    """Return the owner's token; without one the address to get it, or, if the agent waits, only the token once it
    exists."""
    match, provider = request.args.get("match", ""), request.args.get("id", "")
    if bool(match) == bool(provider):
        raise Invalid("'url' or 'id' must be provided as a query parameter, and only one of them.")
    return await _external_auth(provider, match)


async def _external_auth(ident: str, match: str) -> Response:
    """Return the owner's token, or the address to get it; with `listen` the response waits for the token."""
    result = provider_tokens.provider(context(), ident, match)
    if result is None:
        raise agents.external_auth_unknown(match)
    await agent_access.require_user_data(context(), current_agent())
    waiter = None
    if "listen" in request.args:
        waiter = provider_tokens.Waiter(
            current_agent().agent.id, partial(agent_access.require_current_user_data, context(), current_agent())
        )
    return reply(await provider_tokens.for_agent(context(), result, current_agent().owner_id, waiter))


@route(
    blueprint,
    "GET",
    "/me/gitauth",
    scope=AGENT,
    query={"id": str, "listen": str, "match": str, "url": str},
    answers=AgentAuth,
    refuses=(404, 408, 409),
)
@by_agent
async def get_git_auth() -> Response:
    """Return the same as `external-auth` under its older name, for programs that send `url`."""
    return await _external_auth(request.args.get("id", ""), request.args.get("match") or request.args.get("url", ""))


@route(blueprint, "GET", "/me/reinit", scope=AGENT, query={"wait": str}, answers=EVENTS, refuses=(409,))
@by_agent
async def get_reinit() -> Response:
    """Report when a prebuilt workspace has been claimed, so that its agent restarts."""
    waits = request.args.get("wait", "") in {"1", "t", "T", "true", "TRUE", "True"}
    waiter = prebuild_claims.ClaimWaiter(
        current_agent().workspace_id, current_agent().rotated_token or current_agent().agent.auth_token
    )
    return await sse(prebuild_claims.watch_claim(context(), waiter, only_prebuilt=waits))


@route(
    blueprint,
    "POST",
    "/aws-instance-identity",
    scope=PUBLIC,
    body=_AwsIdentity,
    answers=_SessionToken,
    refuses=(401, 404, 409),
)
async def post_aws_instance_identity() -> Response:
    """Authenticate the instance of an identity document."""
    body = await read_body(_AwsIdentity)
    clouds = context().services.api.clouds
    return await _token_of(clouds.aws(body.document, body.signature), body.agent_name)


@route(
    blueprint,
    "POST",
    "/azure-instance-identity",
    scope=PUBLIC,
    body=_AzureIdentity,
    answers=_SessionToken,
    refuses=(401, 404, 409),
)
async def post_azure_instance_identity() -> Response:
    """Authenticate the machine of an attested document."""
    body = await read_body(_AzureIdentity)
    clouds = context().services.api.clouds
    return await _token_of(await clouds.azure(body.signature), body.agent_name)


@route(
    blueprint,
    "POST",
    "/google-instance-identity",
    scope=PUBLIC,
    body=_GoogleIdentity,
    answers=_SessionToken,
    refuses=(401, 404, 409),
)
async def post_google_instance_identity() -> Response:
    """Authenticate the instance of a Compute Engine token."""
    body = await read_body(_GoogleIdentity)
    clouds = context().services.api.clouds
    return await _token_of(await clouds.google(body.json_web_token), body.agent_name)


async def _token_of(instance_id: str, agent_name: str) -> Response:
    return reply(_SessionToken(session_token=await token_of(context(), instance_id, agent_name)))


@route(blueprint, "GET", "/<id:agent>", scope="workspace:read", answers=WorkspaceAgent)
async def get_agent(agent: str) -> Response:
    return reply(await agents.get_agent(context(), subject(), path_uuid(agent)))


@route(blueprint, "GET", "/<id:agent>/connection", scope="workspace:read", answers=AgentConnectionInfo)
async def get_connection(agent: str) -> Response:
    """Return the connection information that a client needs before it dials."""
    await agent_access.load_agent(context(), subject(), path_uuid(agent))
    return reply(connection_info(context()))


@route(
    blueprint,
    "GET",
    ("/<id:agent>/logs", "/<id:agent>/startup-logs"),
    scope="workspace:read",
    query={"after": int, "before": int, "follow": str, "format": str},
    answers=(TEXT, list[WorkspaceAgentLog]),
    others={426: TEXT},
)
async def get_logs(agent: str) -> Response:
    agent_id = path_uuid(agent)
    after, before = read_after(request.args), max(go_int(request.args.get("before", "")) or 0, 0)
    as_text = wants_text(request.args)
    if wants_follow(request.args):
        await agent_access.load_agent(context(), subject(), agent_id)
        return needs_upgrade()
    if as_text:
        text = await agent_logs.list_logs_as_text(context(), subject(), agent_id, after=after, before=before)
        return Response(text, 200, content_type="text/plain; charset=utf-8")
    return reply(await agent_logs.list_logs(context(), subject(), agent_id, after=after, before=before))


@route(
    blueprint, WEBSOCKET, ("/<id:agent>/logs", "/<id:agent>/startup-logs"), scope="workspace:read", query={"after": str}
)
async def follow_logs(agent: str) -> None:
    """Send every stored line, then new ones as they arrive, in lists; ends when a newer build replaces the agent."""
    after = read_after(websocket.args)
    wants_text(websocket.args, follow=True)
    await over_websocket(agent_streams.follow_logs(context(), subject(), path_uuid(agent), after))


@route(blueprint, "GET", "/<id:agent>/watch-metadata", scope="workspace:read", answers=EVENTS)
async def watch_metadata(agent: str) -> Response:
    """Send the whole set immediately, then after every report."""
    return await sse(agent_streams.watch_metadata(context(), subject(), path_uuid(agent)))


@route(blueprint, "GET", "/<id:agent>/watch-metadata-ws", scope="workspace:read", others={426: TEXT})
async def watch_metadata_without_upgrade(agent: str) -> Response:
    await agent_access.load_agent(context(), subject(), path_uuid(agent))
    return needs_upgrade(UpgradeRefusal.EVENTS)


@route(blueprint, WEBSOCKET, "/<id:agent>/watch-metadata-ws", scope="workspace:read")
async def watch_metadata_ws(agent: str) -> None:
    """Send the whole set immediately, then after every report."""
    agent_id = path_uuid(agent)
    source = agent_streams.watch_metadata(context(), subject(), agent_id)
    ask = partial(agent_streams.require_agent_read, context(), subject(), agent_id)
    await while_allowed(ask, lambda _: events_over_websocket(source))


@route(
    blueprint,
    "GET",
    "/<id:agent>/listening-ports",
    scope="workspace:read",
    answers=WorkspaceAgentListeningPortsResponse,
    refuses=(502,),
)
async def get_listening_ports(agent: str) -> Response:
    """Return TCP ports open in the workspace, without the agent's own, well-known non-HTTP ones, and those of apps."""
    return reply(await agent_http.listening_ports(context(), subject(), path_uuid(agent)))


def _agent_response(result: AgentAnswer) -> Response:
    if not result.kind.startswith("application/json"):
        text = result.body[:4096].decode(errors="replace")
        return reply({"message": f'unexpected non-JSON response "{result.kind}"', "detail": text}, result.status)
    return Response(result.body, result.status, content_type="application/json; charset=utf-8")


@route(blueprint, "GET", "/<id:agent>/containers/watch", scope="workspace:read", others={426: TEXT})
async def watch_containers_without_upgrade(agent: str) -> Response:
    await agent_containers.require_watchable(context(), subject(), path_uuid(agent))
    return needs_upgrade(UpgradeRefusal.NOTICES)


@route(blueprint, WEBSOCKET, "/<id:agent>/containers/watch", scope="workspace:read", refuses=(502,))
async def watch_containers(agent: str) -> None:
    """Send each list that the agent sends."""
    agent_id = path_uuid(agent)
    source = agent_containers.watch_containers(context(), subject(), agent_id)
    ask = partial(agent_streams.require_agent_read, context(), subject(), agent_id)
    await while_allowed(ask, lambda _: over_websocket(source))


@route(blueprint, "GET", "/<id:agent>/containers", scope="workspace:read", refuses=(502,))
async def get_containers(agent: str) -> Response:
    """Return the agent's response to `path`, unchanged."""
    result = await agent_http.pass_through(context(), subject(), path_uuid(agent), "GET", "/api/v0/containers")
    return _agent_response(result)


@route(
    blueprint,
    "POST",
    "/<id:agent>/containers/devcontainers/<id:container>/recreate",
    scope="workspace:update",
    refuses=(502,),
)
async def recreate_container(agent: str, container: str) -> Response:
    """Return the agent's response to `path`, unchanged."""
    path = f"/api/v0/containers/devcontainers/{path_uuid(container)}/recreate"
    result = await agent_http.pass_through(context(), subject(), path_uuid(agent), "POST", path)
    return _agent_response(result)


@route(
    blueprint, "DELETE", "/<id:agent>/containers/devcontainers/<id:container>", scope="workspace:update", refuses=(502,)
)
async def delete_container(agent: str, container: str) -> Response:
    """Return the agent's response to `path`, unchanged."""
    path = f"/api/v0/containers/devcontainers/{path_uuid(container)}"
    result = await agent_http.pass_through(context(), subject(), path_uuid(agent), "DELETE", path)
    return _agent_response(result)
