"""Declarations of routes: one frozen record for each view, which validates, limits, documents and types it.

Read by `route.py` (callers), `json.py` and `query.py` (requests) and `openapi/` (descriptions). Not here: registration
of a view at an address (`route.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeAlias, cast

from quart import Request, Websocket, current_app, has_websocket_context, request, websocket

from coder.domain.access.rate_budgets import Budget
from coder.domain.access.route_scopes import Scope, Unscoped

if TYPE_CHECKING:
    from coder.appproxy.http.asgi import Message
    from coder.coderd.http.server.audit_rules import Audited

P = ParamSpec("P")

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
OCTETS = "application/octet-stream"

LIMIT = 1 << 20
"""Default limit of a body's bytes from an authenticated caller."""


@dataclass(frozen=True, slots=True)
class Content:
    """Response that is not JSON; the empty type is no body at all."""

    type: str


NOTHING, TEXT, HTML = Content(""), Content("text/plain"), Content("text/html")
BYTES, EVENTS = Content(OCTETS), Content("text/event-stream")


JsonShape: TypeAlias = type | UnionType
"""Type of a body that is JSON."""
Shape: TypeAlias = JsonShape | Content
Shapes: TypeAlias = Shape | tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Query parameter with words and `key:value` terms."""

    keys: tuple[str, ...]


def search(keys: str) -> Search:
    """Return a search with these keys, written with spaces between them."""
    return Search(tuple(keys.split()))


class View(Protocol):
    """Function of a route; its name and documentation describe the route."""

    __name__: str


@dataclass(frozen=True, slots=True)
class Route:
    """View and its whole declaration."""

    view: View
    methods: tuple[str, ...]
    """Methods; empty for a WebSocket."""
    rules: tuple[str, ...]
    scope: Scope
    answers: Shapes = NOTHING
    """Response: a type, encoded as JSON; a Content; or a tuple of either."""
    status: int = 200
    others: Mapping[int, Shapes] = field(default_factory=dict)
    """Further statuses that are not refusals of the common form."""
    refuses: tuple[int, ...] = ()
    """Statuses of refusals besides those every route of its kind has."""
    body: JsonShape | None = None
    required: tuple[str, ...] = ()
    """Fields of the body that must not be empty."""
    allow_empty: bool = False
    """Whether a missing body reads as an empty object."""
    takes: str = JSON
    limit: int = 0
    """Maximum bytes of the body; 0 where the route has none."""
    query: Mapping[str, type | Search] = field(default_factory=dict)
    wants: tuple[str, ...] = ()
    """Required query parameters."""
    audit: Audited | None = None
    budgets: tuple[Budget, ...] = ()
    """Budgets of requests per minute; by default those of `rate_budgets.budgets_of`."""
    compressed: bool = False
    """Whether the response may be compressed: a GET whose answer has no credentials (`compression.py`)."""
    asks_itself: bool = False
    """Whether the view authenticates itself: by a ticket, too, or only in some cases."""

    @property
    def websocket(self) -> bool:
        return not self.methods

    @property
    def signed_in(self) -> bool:
        """Return whether a key is required before the view runs."""
        return not self.asks_itself and (not isinstance(self.scope, Unscoped) or self.scope is Unscoped.ANY_KEY)


def own_scope(current: Request | Websocket) -> Message:
    """Return the ASGI scope of a request, where the server keeps keys of its own (`coder_…`)."""
    return cast("Message", current.scope)


def declared() -> Route:
    """Return the route of the current request. Raises LookupError without a declaration (the dashboard's pages)."""
    current = websocket if has_websocket_context() else request
    return declaration_of(current_app.view_functions.get(current.endpoint or ""))


def declaration_of(view: Callable[P, object] | None) -> Route:
    """Return a view's declaration. Raises LookupError without one."""
    result = route_of(view)
    if result is None:
        raise LookupError(f"{view} declares no route")
    return result


def route_of(view: Callable[P, object] | None) -> Route | None:
    """Return the declaration of a registered view."""
    result: Route | None = getattr(view, "route", None)
    return result
