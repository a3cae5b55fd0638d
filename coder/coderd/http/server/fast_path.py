"""The GETs that make up most of the traffic, and the cheap public ones, answered without Quart.

Quart costs more than the response on these routes (figures: docs/decisions/fast-path.md). Shared with it: the
middleware, authentication, rate limits, the table of errors, and the functions that respond, which the blueprints call,
too. Left out: routing, contexts, request and response objects. GETs need no CSRF check, and none of these is audited.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from coder.api.base import codec
from coder.api.base.refusals import Unauthenticated
from coder.appproxy.http.asgi import Application, Message, Receive, Send
from coder.appproxy.http.connection_shares import authenticated_as
from coder.appproxy.http.errors import envelope_of
from coder.appproxy.http.hypercorn_fixes import FAST_PATHS
from coder.appproxy.http.rate_limits import BYPASS_HEADER, key_of, user_key
from coder.appproxy.http.simple_requests import NotSimple
from coder.coderd.http.people import users
from coder.coderd.http.server.auth import challenge
from coder.coderd.http.server.declarations import declaration_of
from coder.coderd.http.server.query import Query, read_arguments
from coder.coderd.http.site.dashboard_files import answer_file
from coder.coderd.http.site.health_and_version import (
    TEXT_TYPE,
    build_info,
    health_answer,
    latency_headers,
    liveness_answer,
    readiness_answer,
)
from coder.coderd.http.templates import templates
from coder.coderd.http.workspaces import workspaces
from coder.coderd.services.access.authentication import Caller, authenticate
from coder.coderd.services.access.authorization import require_scope
from coder.domain.access.credentials import Credentials
from coder.domain.access.rate_budgets import API
from coder.domain.access.route_scopes import named

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

Answer = Callable[["Context", Caller, Query], Awaitable[object]]
Headers = list[tuple[bytes, bytes]]
Reply = tuple[int, Headers, bytes]

ROUTES: dict[str, Answer] = {
    "/api/v2/users/me": users.show_me,
    "/api/v2/workspaces": workspaces.show_list,
    "/api/v2/templates": templates.show_list,
}
_DECLARATIONS = {
    "/api/v2/users/me": declaration_of(users.get_user),
    "/api/v2/workspaces": declaration_of(workspaces.get_workspaces),
    "/api/v2/templates": declaration_of(templates.get_templates),
}
"""Declarations of the views that these replace: they apply here, too."""
_SCOPES = {path: named(declaration.scope) for path, declaration in _DECLARATIONS.items()}
_COMPRESSED = frozenset(path for path, declaration in _DECLARATIONS.items() if declaration.compressed)
_ROUTE_OF = {"/api/v2/users/me": "/api/v2/users/<user>"}
"""Route name in metrics and traces for a path that is no route of its own."""
BUILD_INFO, LATENCY, ASSETS = "/api/v2/buildinfo", "/latency-check", "/assets/"
PROBES = {"/healthz": health_answer, "/livez": liveness_answer, "/readyz": readiness_answer}
_ASSET_ROUTE = "/<page:path>"
FAST_PATHS.update(path.encode() for path in (*ROUTES, BUILD_INFO, LATENCY, *PROBES, ASSETS))

_JSON = (b"content-type", b"application/json; charset=utf-8")
_TEXT = (b"content-type", TEXT_TYPE.encode())
_BYPASS = BYPASS_HEADER.lower()


def _value(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in headers if name == wanted), "")


def _raw(headers: Iterable[tuple[str, str]]) -> Headers:
    return [(name.lower().encode(), value.encode()) for name, value in headers]


def _address_of(scope: Message) -> str:
    client = scope.get("client")
    return client[0] if client else ""


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers = [headers[0], (b"content-length", b"%d" % len(body)), *headers[1:]]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class FastPath:
    """ASGI application in front of another one."""

    def __init__(self, app: Application, ctx: Context) -> None:
        self._app = app
        self._ctx = ctx
        self._limits = ctx.services.rate_limits

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        if is_get and (reply := await self._public(scope)) is not None:
            await _send(send, *reply)
            return
        answer = ROUTES.get(scope["path"]) if is_get else None
        if answer is None:
            if scope.get("coder_simple"):
                raise NotSimple
            await self._app(scope, receive, send)
            return
        scope["coder_route"] = _ROUTE_OF.get(scope["path"], scope["path"])
        scope["coder_compressed"] = scope["path"] in _COMPRESSED
        extra: list[tuple[str, str]] = []
        try:
            body, status = codec.encode(await self._answer(answer, scope)), 200
        except Exception as error:
            status, body, extra = envelope_of(error)
        headers = [_JSON, *_raw(extra)]
        await _send(send, status, headers, body)

    async def _public(self, scope: Message) -> Reply | None:
        """Return the reply of a view without authentication; None for other paths."""
        path: str = scope["path"]
        if (probe := PROBES.get(path)) is not None:
            scope["coder_route"] = path
            status, body = probe(self._ctx)
            return status, [_TEXT], body
        if path == LATENCY:
            scope["coder_route"] = path
            return 200, [_TEXT, *_raw(latency_headers(self._ctx, _address_of(scope)))], b"OK"
        if path.startswith(ASSETS):
            if "//" in path:
                return None  # a redirect of Quart's router
            scope["coder_route"] = _ASSET_ROUTE
            known_tag = _value(scope["headers"], b"if-none-match")
            found = answer_file(self._ctx, path[1:], known_tag, _value(scope["headers"], b"accept-encoding"))
            if found is None:
                return None
            status, named, body = found
            return status, _raw(named), body
        return await self._build_info(scope) if path == BUILD_INFO else None

    async def _build_info(self, scope: Message) -> Reply:
        scope["coder_route"] = BUILD_INFO
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        address = _address_of(scope)
        caller = None
        try:
            # Same as `count_public_request` of auth.py: only a session can bypass the limit.
            if headers.get(_BYPASS) == "true":
                with contextlib.suppress(Unauthenticated):
                    credentials = Credentials.of(headers, read_arguments(scope["query_string"]), address)
                    caller = await authenticate(self._ctx, credentials)
            self._count(caller, address, headers, scope)
            return 200, [_JSON], codec.encode(build_info(self._ctx))
        except Exception as error:
            status, body, extra = envelope_of(error)
            return status, [_JSON, *_raw(extra)], body

    async def _answer(self, answer: Answer, scope: Message) -> object:
        # Same as `authenticated` and `count_request` of auth.py. No CSRF: only GETs. The listener put a trusted proxy's
        # address into `client` as well as into the Remote-Addr header there.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        arguments = read_arguments(scope["query_string"])
        address = _address_of(scope)
        try:
            caller = await authenticate(self._ctx, Credentials.of(headers, arguments, address))
        except Unauthenticated as error:
            self._count(None, address, headers, scope)
            error.headers = (*error.headers, ("WWW-Authenticate", challenge(self._ctx)))
            raise
        authenticated_as(user_key(caller.subject.user_id))
        self._count(caller, address, headers, scope)
        require_scope(caller.subject, _SCOPES[scope["path"]])
        return await answer(self._ctx, caller, Query(arguments=arguments))

    def _count(self, caller: Caller | None, address: str, headers: Mapping[str, str], scope: Message) -> None:
        if self._limits.limit_of(API):
            bypass = headers.get(_BYPASS) == "true"
            scope["coder_counted"] = self._limits.count(
                key_of(caller, address, bypass), scope["path"], route=scope["coder_route"]
            )
