"""What a route says of itself: one frozen record beside each view, which validates, limits, documents and types it.

Read by `route.py` (who may come in), `json.py` and `query.py` (what may be sent) and `openapi/` (what is told of it).
Not here: putting a view at an address (`route.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from quart import current_app, has_websocket_context, request, websocket

from coder.domain.access.rate_budgets import Budget
from coder.domain.access.route_scopes import Scope, Unscoped

if TYPE_CHECKING:
    from coder.coderd.http.server.audit_rules import Audited

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
OCTETS = "application/octet-stream"

LIMIT = 1 << 20
"Bytes of a body from somebody we know, where the route says nothing else."


@dataclass(frozen=True, slots=True)
class Content:
    """An answer that is not JSON; the empty type is no body at all."""

    type: str


NOTHING, TEXT, HTML = Content(""), Content("text/plain"), Content("text/html")
BYTES, EVENTS = Content(OCTETS), Content("text/event-stream")


@dataclass(frozen=True, slots=True)
class Search:
    """A query parameter that holds words and `key:value` terms."""

    keys: tuple[str, ...]


def search(keys: str) -> Search:
    """A search with these keys, written with spaces between them."""
    return Search(tuple(keys.split()))


@dataclass(frozen=True, slots=True)
class Route:
    """One view and everything that is promised of it."""

    view: Callable[..., Any]
    methods: tuple[str, ...]
    "Empty for a WebSocket."
    rules: tuple[str, ...]
    scope: Scope
    answers: Any = NOTHING
    "A type, encoded as JSON; a Content; or a tuple of either."
    status: int = 200
    others: Mapping[int, Any] = field(default_factory=dict)
    "Further statuses that are no refusals of the common form."
    refuses: tuple[int, ...] = ()
    "Statuses of refusals besides those every route of its kind has."
    body: Any = None
    required: tuple[str, ...] = ()
    "Fields of the body that must not be empty."
    allow_empty: bool = False
    "No body reads as an empty object."
    takes: str = JSON
    limit: int = 0
    "Bytes of the body; 0 where the route has none."
    query: Mapping[str, Any] = field(default_factory=dict)
    wants: tuple[str, ...] = ()
    "Query parameters that must be there."
    audit: Audited | None = None
    budgets: tuple[Budget, ...] = ()
    "Of requests a minute; none said: those of `rate_budgets.budgets_of`."
    asks_itself: bool = False
    "The view authenticates: by a ticket, too, or only in some cases."

    @property
    def websocket(self) -> bool:
        return not self.methods

    @property
    def signed_in(self) -> bool:
        """Whether a key is asked for before the view runs."""
        return not self.asks_itself and (not isinstance(self.scope, Unscoped) or self.scope is Unscoped.ANY_KEY)


def declared() -> Route:
    """The route of the current request. Raises LookupError at one that declares nothing (the dashboard's pages)."""
    here = websocket if has_websocket_context() else request
    return declaration_of(current_app.view_functions.get(here.endpoint or ""))


def declaration_of(view: Any) -> Route:
    """What a view declares. Raises LookupError for one that declares nothing."""
    found = route_of(view)
    if found is None:
        raise LookupError(f"{view} declares no route")
    return found


def route_of(view: Any) -> Route | None:
    """What a registered view declares."""
    found: Route | None = getattr(view, "route", None)
    return found
