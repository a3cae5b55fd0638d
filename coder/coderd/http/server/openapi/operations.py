"""Every operation of an application: one method at one address, with its declaration.

Only the pages of the dashboard (`site`) are left out, which take all remaining paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from coder.coderd.http.server.declarations import Route, route_of
from coder.domain.access.route_scopes import AGENT, ANY_KEY, PROVISIONER, PROXY, named

Links = Iterable[Any]
"""Endpoints of `rpc_endpoints`: pattern, handler, scope, refusals."""

_PARAMETER = re.compile(r"<(?:(?P<kind>[^:<>]*):)?(?P<name>[^<>]*)>")


_FILES = frozenset({"site", "documentation"})
"""Blueprints of files for browsers, which are no operations of the API."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Method at an address."""

    method: str
    path: str
    """Path with `{name}` for parameters."""
    uuids: frozenset[str]
    """Parameters that are UUIDs."""
    tag: str
    route: Route

    @property
    def name(self) -> str:
        """Return the view's name."""
        return self.route.view.__name__


def operations_of(app: Any, links: Links = ()) -> list[Operation]:
    """Return all operations, sorted. Raises LookupError for a view without a declaration."""
    results = [*_of_rules(app), *map(_of_link, links)]
    return sorted(results, key=lambda item: (item.path, item.method, item.route.websocket))


def _of_rules(app: Any) -> Iterator[Operation]:
    for rule in app.url_map.iter_rules():
        tag, _, _ = rule.endpoint.rpartition(".")
        if tag in _FILES:
            continue
        declaration = route_of(app.view_functions[rule.endpoint])
        if declaration is None:
            raise LookupError(f"{rule.endpoint} declares no route")
        path = _PARAMETER.sub(lambda match: f"{{{match['name']}}}", rule.rule)
        uuids = frozenset(match["name"] for match in _PARAMETER.finditer(rule.rule) if match["kind"] == "id")
        for method in ("GET",) if declaration.websocket else declaration.methods:
            yield Operation(method.lower(), path, uuids, tag.replace("_", " "), declaration)


def _of_link(link: Any) -> Operation:
    declaration = Route(link.handler, (), (link.pattern,), link.scope, refuses=link.refuses, asks_itself=True)
    return Operation("get", link.pattern, frozenset(), "links", declaration)


def refusals_of(item: Operation) -> set[int]:
    """Return the statuses of refusals: those every operation of its kind has, and the route's own."""
    declaration = item.route
    result = set(declaration.refuses)
    if named(declaration.scope):
        result |= {400, 401, 403, 404}
    elif declaration.scope is ANY_KEY:
        result |= {400, 401, 403}
    elif declaration.scope in {AGENT, PROXY, PROVISIONER}:
        result |= {401}
    if declaration.limit:
        result |= {400, 408, 413}
    if "{" in item.path:  # a value no route takes, such as one with an encoded slash
        result |= {404}
    if item.path.startswith("/api/") and item.tag != "links":
        result |= {428, 429}
    return result
