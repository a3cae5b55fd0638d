"""`@route`: registers a view at its address and enforces its declaration.

From outside to inside: authentication, the scope of the key, the audit entry, the view. The decorated function itself
is unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from quart import Blueprint, Response

from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.coderd.http.server import audited
from coder.coderd.http.server.auth import authenticated, caller
from coder.coderd.http.server.declarations import JSON, LIMIT, NOTHING, JsonShape, Route, Search, Shapes
from coder.coderd.services.access.authorization import require_scope
from coder.domain.access.rate_budgets import Budget
from coder.domain.access.route_scopes import BY_SECRET, Scope, Unscoped, named

if TYPE_CHECKING:
    from quart.typing import RouteCallable

    from coder.coderd.http.server.audit_rules import Audited

P = ParamSpec("P")
T = TypeVar("T")
Answer = TypeVar("Answer", bound=Response | None)
"""Result of a view; that of a WebSocket's is None."""
WEBSOCKET = "WEBSOCKET"
_STRANGERS = frozenset({Unscoped.PUBLIC, Unscoped.OPTIONAL, Unscoped.CLIENT, Unscoped.APPLICATION, Unscoped.STREAM})
"""Callers that may send a body before authentication."""


def route(
    blueprint: Blueprint,
    method: str | Sequence[str],
    rule: str | Sequence[str],
    *,
    scope: Scope,
    answers: Shapes = NOTHING,
    status: int = 200,
    others: Mapping[int, Shapes] | None = None,
    refuses: Sequence[int] = (),
    body: JsonShape | None = None,
    required: Sequence[str] = (),
    allow_empty: bool = False,
    takes: str = JSON,
    limit: int = 0,
    query: Mapping[str, type | Search] | None = None,
    wants: Sequence[str] = (),
    audit: Audited | None = None,
    budget: Budget | Sequence[Budget] = (),
    compressed: bool = False,
    asks_itself: bool = False,
) -> Callable[[Callable[P, Awaitable[Answer]]], Callable[P, Awaitable[Answer]]]:
    """Declare the view below it. The parameters are those of `declarations.Route`; several rules share the view."""

    def add(view: Callable[P, Awaitable[Answer]]) -> Callable[P, Awaitable[Answer]]:
        methods = (method,) if isinstance(method, str) else tuple(method)
        reads = body is not None or takes != JSON
        usual = PUBLIC_LIMIT if scope in _STRANGERS else LIMIT
        declaration = Route(
            view=view,
            methods=() if methods == (WEBSOCKET,) else methods,
            rules=(rule,) if isinstance(rule, str) else tuple(rule),
            scope=scope,
            answers=answers,
            status=status,
            others=others or {},
            refuses=tuple(refuses),
            body=body,
            required=tuple(required),
            allow_empty=allow_empty,
            takes=takes,
            limit=limit or (usual if reads else 0),
            query=query or {},
            wants=tuple(wants),
            audit=audit,
            budgets=(budget,) if isinstance(budget, Budget) else tuple(budget),
            compressed=compressed,
            asks_itself=asks_itself,
        )
        _register(blueprint, declaration, view)
        return view

    return add


def _register(blueprint: Blueprint, declaration: Route, view: Callable[P, Awaitable[Response | None]]) -> None:
    guarded = _guarded(declaration, view)
    view.__dict__["route"] = declaration
    name = declaration.view.__name__
    for rule in declaration.rules:
        if declaration.websocket:
            blueprint.add_websocket(rule, name, guarded)
        else:
            answering = cast("RouteCallable", guarded)  # None is the result of a WebSocket's view only
            blueprint.add_url_rule(rule, name, answering, methods=list(declaration.methods))


def _guarded(
    declaration: Route, view: Callable[P, Awaitable[Response | None]]
) -> Callable[P, Awaitable[Response | None]]:
    guarded = view if declaration.audit is None else audited.around(view, declaration.audit)
    if declaration.signed_in:
        guarded = authenticated(_within_scope(guarded, declaration.scope))
    guarded.__dict__["route"] = declaration
    if declaration.scope in BY_SECRET:
        guarded.__dict__["counts_itself"] = True
    return guarded


def _within_scope(view: Callable[P, Awaitable[T]], scope: Scope) -> Callable[P, Awaitable[T]]:
    """Wrap the view for keys whose scope covers the route."""
    names = named(scope)
    if not names:
        return view

    @functools.wraps(view)
    async def scoped(*args: P.args, **kwargs: P.kwargs) -> T:
        require_scope(caller().subject, names)
        return await view(*args, **kwargs)

    return scoped
