"""`@route`: registers a view at its address and enforces its declaration.

From outside to inside: authentication, the scope of the key, the audit entry, the view. The decorated function itself
is unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from quart import Blueprint, Response

from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.coderd.http.server import audited
from coder.coderd.http.server.auth import authenticated, caller
from coder.coderd.http.server.declarations import JSON, LIMIT, NOTHING, Route
from coder.coderd.services.access.authorization import require_scope
from coder.domain.access.rate_budgets import Budget
from coder.domain.access.route_scopes import BY_SECRET, Scope, Unscoped, named

if TYPE_CHECKING:
    from coder.coderd.http.server.audit_rules import Audited

P = ParamSpec("P")
T = TypeVar("T")
View = TypeVar("View", bound=Callable[..., Awaitable[Response | None]])
WEBSOCKET = "WEBSOCKET"
_STRANGERS = frozenset({Unscoped.PUBLIC, Unscoped.OPTIONAL, Unscoped.CLIENT, Unscoped.APPLICATION, Unscoped.STREAM})
"""Callers that may send a body before authentication."""


def route(
    blueprint: Blueprint,
    method: str | Sequence[str],
    rule: str | Sequence[str],
    *,
    scope: Scope,
    answers: Any = NOTHING,
    status: int = 200,
    others: Mapping[int, Any] | None = None,
    refuses: Sequence[int] = (),
    body: Any = None,
    required: Sequence[str] = (),
    allow_empty: bool = False,
    takes: str = JSON,
    limit: int = 0,
    query: Mapping[str, Any] | None = None,
    wants: Sequence[str] = (),
    audit: Audited | None = None,
    budget: Budget | Sequence[Budget] = (),
    compressed: bool = False,
    asks_itself: bool = False,
) -> Callable[[View], View]:
    """Declare the view below it. The parameters are those of `declarations.Route`; several rules share the view."""

    def add(view: View) -> View:
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
        _register(blueprint, declaration)
        return view

    return add


def _register(blueprint: Blueprint, declaration: Route) -> None:
    guarded = _guarded(declaration)
    declaration.view.route = declaration  # type: ignore[attr-defined]
    name = declaration.view.__name__
    for rule in declaration.rules:
        if declaration.websocket:
            blueprint.add_websocket(rule, name, guarded)
        else:
            blueprint.add_url_rule(rule, name, guarded, methods=list(declaration.methods))


def _guarded(declaration: Route) -> Callable[..., Awaitable[Any]]:
    guarded: Any = (
        declaration.view if declaration.audit is None else audited.around(declaration.view, declaration.audit)
    )
    if declaration.signed_in:
        guarded = authenticated(_within_scope(guarded, declaration.scope))
    guarded.route = declaration
    if declaration.scope in BY_SECRET:
        guarded.counts_itself = True
    return cast("Callable[..., Awaitable[Any]]", guarded)


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
