"""Agents: /api/v2/workspaceagents, for people by session and for agents (`me`) by their token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from quart import Blueprint, Response, g, request, websocket

from coder.api.struct import ApiStruct
from coder.coderd.http.auth import authenticated, context, credentials, optional_caller, subject
from coder.coderd.http.json import read_body, reply
from coder.coderd.http.query import Query, path_uuid
from coder.coderd.http.streams import events_over_websocket, needs_upgrade, over_websocket, sse
from coder.coderd.services import agent_containers, agent_http, agents, provider_tokens, watching
from coder.coderd.services.agents import AppReport, LogLine
from coder.coderd.services.derp_map import connection_info
from coder.coderd.services.errors import Invalid, Unauthenticated
from coder.coderd.services.instance_identity import Clouds, token_of
from coder.coderd.services.proxy_calls import authenticate_proxy
from coder.coderd.services.proxy_token import TOKEN_HEADER
from coder.coderd.store.agents import AgentPlace
from coder.domain.search import parse_rfc3339

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
    """Lets only requests with a current agent's token through; `place()` is that agent."""

    @wraps(view)
    async def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        g.place = await agents.authenticate_agent(context(), credentials())
        return await view(*args, **kwargs)

    return guarded


def place() -> AgentPlace:
    found: AgentPlace = g.place
    return found


def _nothing() -> Response:
    # Upstream encodes "no body" as JSON.
    return Response(b"", 200, content_type="application/json; charset=utf-8")


@blueprint.get("/connection")
async def get_generic_connection() -> Response:
    proxy_token = request.headers.get(TOKEN_HEADER, "")
    if proxy_token:
        await authenticate_proxy(context(), proxy_token)
    elif await optional_caller() is None:
        raise Unauthenticated("API key or external proxy authentication required, but none provided")
    return reply(connection_info(context()))


@blueprint.patch("/me/logs")
@by_agent
async def patch_logs() -> Response:
    body = await read_body(_Logs)
    now = context().clock.now()
    lines = [LogLine(parse_rfc3339(line.created_at) or now, line.output, line.level) for line in body.logs]
    await agents.append_logs(context(), place(), body.log_source_id, lines)
    return _nothing()


@blueprint.post("/me/log-source")
@by_agent
async def post_log_source() -> Response:
    body = await read_body(_Source)
    made = await agents.add_log_source(context(), place(), body.id, body.display_name, body.icon)
    return reply(made, 201)


@blueprint.get("/me/gitsshkey")
@by_agent
async def get_git_ssh_key() -> Response:
    return reply(await agents.get_git_ssh_key(context(), place()))


@blueprint.patch("/me/app-status")
@by_agent
async def patch_app_status() -> Response:
    body = await read_body(_AppStatus)
    report = AppReport(body.app_slug, body.state, body.message, body.uri)
    await agents.report_app_status(context(), place(), report)
    return _nothing()


@blueprint.get("/me/external-auth")
@by_agent
async def get_external_auth() -> Response:
    match, provider = request.args.get("match", ""), request.args.get("id", "")
    if bool(match) == bool(provider):
        raise Invalid("'url' or 'id' must be provided as a query parameter, and only one of them.")
    return await _external_auth(provider, match)


async def _external_auth(ident: str, match: str) -> Response:
    """The owner's token, or where the owner gets one; with `listen` the answer waits for it."""
    found = provider_tokens.provider(context(), ident, match)
    if found is None:
        raise agents.external_auth_unknown(match)
    waits = "listen" in request.args
    return reply(await provider_tokens.for_agent(context(), found, place().owner_id, waits=waits))


@blueprint.get("/me/gitauth")
@by_agent
async def get_git_auth() -> Response:
    return await _external_auth("", request.args.get("url", ""))


@blueprint.get("/me/reinit")
@by_agent
async def get_reinit() -> Response:
    waits = request.args.get("wait", "") in {"1", "t", "T", "true", "TRUE", "True"}
    return await sse(watching.watch_claim(context(), place().workspace_id, only_prebuilt=waits))


@blueprint.post("/aws-instance-identity")
async def post_aws_instance_identity() -> Response:
    body = await read_body(_AwsIdentity)
    clouds: Clouds = context().part(Clouds)
    return await _token_of(clouds.aws(body.document, body.signature), body.agent_name)


@blueprint.post("/azure-instance-identity")
async def post_azure_instance_identity() -> Response:
    body = await read_body(_AzureIdentity)
    clouds: Clouds = context().part(Clouds)
    return await _token_of(await clouds.azure(body.signature), body.agent_name)


@blueprint.post("/google-instance-identity")
async def post_google_instance_identity() -> Response:
    body = await read_body(_GoogleIdentity)
    clouds: Clouds = context().part(Clouds)
    return await _token_of(await clouds.google(body.json_web_token), body.agent_name)


async def _token_of(instance_id: str, agent_name: str) -> Response:
    return reply({"session_token": await token_of(context(), instance_id, agent_name)})


@blueprint.get("/<agent>")
@authenticated
async def get_agent(agent: str) -> Response:
    return reply(await agents.get_agent(context(), subject(), path_uuid(agent)))


@blueprint.get("/<agent>/connection")
@authenticated
async def get_connection(agent: str) -> Response:
    await agents.load_agent(context(), subject(), path_uuid(agent))
    return reply(connection_info(context()))


@blueprint.get("/<agent>/logs")
@blueprint.get("/<agent>/startup-logs")
@authenticated
async def get_logs(agent: str) -> Response:
    agent_id = path_uuid(agent)
    query = Query()
    after, before = query.positive("after"), query.positive("before")
    query.check()
    if "follow" in request.args and request.args["follow"] not in {"false", "0"}:
        await agents.load_agent(context(), subject(), agent_id)
        return needs_upgrade()
    logs = await agents.list_logs(context(), subject(), agent_id, after=after, before=before)
    if query.text("format") == "text":
        text = "".join(f"{log.created_at.isoformat()} [{log.level}] {log.output}\n" for log in logs)
        return Response(text, 200, content_type="text/plain; charset=utf-8")
    return reply(logs)


@blueprint.websocket("/<agent>/logs")
@blueprint.websocket("/<agent>/startup-logs")
@authenticated
async def follow_logs(agent: str) -> None:
    text = websocket.args.get("after", "")
    after = int(text) if text.isascii() and text.isdigit() else 0
    await over_websocket(watching.follow_logs(context(), subject(), path_uuid(agent), after))


@blueprint.get("/<agent>/watch-metadata")
@authenticated
async def watch_metadata(agent: str) -> Response:
    return await sse(watching.watch_metadata(context(), subject(), path_uuid(agent)))


@blueprint.get("/<agent>/watch-metadata-ws")
@authenticated
async def watch_metadata_without_upgrade(agent: str) -> Response:
    await agents.load_agent(context(), subject(), path_uuid(agent))
    return needs_upgrade()


@blueprint.websocket("/<agent>/watch-metadata-ws")
@authenticated
async def watch_metadata_ws(agent: str) -> None:
    await events_over_websocket(watching.watch_metadata(context(), subject(), path_uuid(agent)))


@blueprint.get("/<agent>/listening-ports")
@authenticated
async def get_listening_ports(agent: str) -> Response:
    return reply(await agent_http.listening_ports(context(), subject(), path_uuid(agent)))


def _as_agent_said(found: agent_http.Answer) -> Response:
    if not found.kind.startswith("application/json"):
        said = found.body[:4096].decode(errors="replace")
        return reply({"message": f'unexpected non-JSON response "{found.kind}"', "detail": said}, found.status)
    return Response(found.body, found.status, content_type="application/json; charset=utf-8")


@blueprint.get("/<agent>/containers/watch")
@authenticated
async def watch_containers_without_upgrade(agent: str) -> Response:
    await agent_containers.require_watchable(context(), subject(), path_uuid(agent))
    return needs_upgrade()


@blueprint.websocket("/<agent>/containers/watch")
@authenticated
async def watch_containers(agent: str) -> None:
    await over_websocket(agent_containers.watch_containers(context(), subject(), path_uuid(agent)))


@blueprint.get("/<agent>/containers")
@authenticated
async def get_containers(agent: str) -> Response:
    found = await agent_http.pass_through(context(), subject(), path_uuid(agent), "GET", "/api/v0/containers")
    return _as_agent_said(found)


@blueprint.post("/<agent>/containers/devcontainers/<container>/recreate")
@authenticated
async def recreate_container(agent: str, container: str) -> Response:
    path = f"/api/v0/containers/devcontainers/{path_uuid(container)}/recreate"
    found = await agent_http.pass_through(context(), subject(), path_uuid(agent), "POST", path)
    return _as_agent_said(found)


@blueprint.delete("/<agent>/containers/devcontainers/<container>")
@authenticated
async def delete_container(agent: str, container: str) -> Response:
    path = f"/api/v0/containers/devcontainers/{path_uuid(container)}"
    found = await agent_http.pass_through(context(), subject(), path_uuid(agent), "DELETE", path)
    return _as_agent_said(found)
