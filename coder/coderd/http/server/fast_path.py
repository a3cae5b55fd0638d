"""The few GETs that make up most of the traffic, answered without Quart.

Quart costs more than the response on these routes (figures: docs/decisions/fast-path.md). Shared with it: the
middleware, authentication, rate limits, the table of errors, and the functions that respond, which the blueprints call,
too. Left out: routing, contexts, request and response objects. GETs need no CSRF check, and none of these is audited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from coder.api.base import codec
from coder.api.base.refusals import Unauthenticated
from coder.appproxy.http.connection_shares import authenticated_as
from coder.appproxy.http.errors import envelope_of
from coder.appproxy.http.hypercorn_fixes import FAST_PATHS
from coder.appproxy.http.rate_limits import BYPASS_HEADER, key_of, user_key
from coder.coderd.http.people import users
from coder.coderd.http.server.auth import challenge
from coder.coderd.http.server.declarations import declaration_of
from coder.coderd.http.server.query import Query, read_arguments
from coder.coderd.http.templates import templates
from coder.coderd.http.workspaces import workspaces
from coder.coderd.services.access.authentication import Caller, authenticate
from coder.coderd.services.access.authorization import require_scope
from coder.domain.access.credentials import Credentials
from coder.domain.access.rate_budgets import API
from coder.domain.access.route_scopes import named

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

Answer = Callable[["Context", Caller, Query], Awaitable[Any]]
Message = dict[str, Any]

ROUTES: dict[str, Answer] = {
    "/api/v2/users/me": users.show_me,
    "/api/v2/workspaces": workspaces.show_list,
    "/api/v2/templates": templates.show_list,
}
_VIEWS = {
    "/api/v2/users/me": users.get_user,
    "/api/v2/workspaces": workspaces.get_workspaces,
    "/api/v2/templates": templates.get_templates,
}
"""Views that these replace: their declarations apply here, too."""
_SCOPES = {path: named(declaration_of(view).scope) for path, view in _VIEWS.items()}
_ROUTE_OF = {"/api/v2/users/me": "/api/v2/users/<user>"}
"""Route name in metrics and traces for a path that is no route of its own."""
FAST_PATHS.update(path.encode() for path in ROUTES)

_JSON = (b"content-type", b"application/json; charset=utf-8")
_BYPASS = BYPASS_HEADER.lower()


class FastPath:
    """ASGI application in front of another one."""

    def __init__(self, app: Any, ctx: Context) -> None:
        self._app = app
        self._ctx = ctx
        self._limits = ctx.services.rate_limits

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        answer = ROUTES.get(scope["path"]) if scope.get("method") == "GET" and scope["type"] == "http" else None
        if answer is None:
            await self._app(scope, receive, send)
            return
        scope["coder_route"] = _ROUTE_OF.get(scope["path"], scope["path"])
        extra: list[tuple[str, str]] = []
        try:
            body, status = codec.encode(await self._answer(answer, scope)), 200
        except Exception as error:
            status, body, extra = envelope_of(error)
        headers = [_JSON, (b"content-length", b"%d" % len(body))]
        headers += [(name.lower().encode(), value.encode()) for name, value in extra]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _answer(self, answer: Answer, scope: Message) -> Any:
        # Same as `authenticated` and `count_request` of auth.py. No CSRF: only GETs. The listener put a trusted proxy's
        # address into `client` as well as into the Remote-Addr header there.
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        arguments = read_arguments(scope["query_string"])
        client = scope.get("client")
        address = client[0] if client else ""
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
