"""Every place of a request in which an id can stand, read from what the routes declare.

Paths, bodies, queries and the terms of searches. Asking is not here.
"""

from __future__ import annotations

import functools
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from coder.coderd.http.server.declarations import Route, Search
from tests.kit.openapi import application

BODY, QUERY, SEARCH, PATH = "body", "query", "search", "path"
KEYS = "{}"
"Stands for the keys of a map in the path of a place."
ITEMS = "[]"
"Stands for the items of a list."


@dataclass(frozen=True)
class Place:
    """Where one id stands: in the path, in a field of the body, in a query parameter, in a term of a search."""

    method: str
    rule: str
    "With `{name}` for each parameter."
    where: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} {self.rule} {self.where}:{'.'.join(self.path)}"


_UNTYPED: dict[str, tuple[tuple[str, ...], ...]] = {
    "AuthorizationRequest": tuple(
        ("checks", "x", "object", name) for name in ("organization_id", "owner_id", "resource_id")
    ),
    "OrganizationSyncSettings": (("mapping", "x", ITEMS),),
    "GroupSyncSettings": (("mapping", "x", ITEMS),),
    # What is added stands in every later answer, whatever it is: no lookup happens before somebody signs in.
    "MappingChange": (("remove", ITEMS, "Gets"),),
}
"""Fields whose type says nothing of what is in them."""
_ID = re.compile(r"(^|_)ids?($|_)|ID$")
_NO_ID = re.compile(
    r"_(before|after|time|status|offset|challenge.*|description|type)$|^(created|last|date|has[-_]|is_|github|oauth)"
    r"|^(format|follow|listen|wait|match|url|state|code|scope|error|redirect|redirect_uri|interval|sections|timezone"
    r"|limit|offline|max_age|status|tags|type|action|dormant|outdated|deleted|deprecated|feature|force|since|claimField"
    r"|include_system|service_account|login_type|role|param|display_name|exact_.*|build_reason|shared|oidc_merge_state"
    r"|resource_type|email)$"
)
"""Parameters that are times, words of a list, switches, or addresses of other programs."""
_MAPS_OF_WORDS = {"tags", "csp-report", "checks", "legacy_group_name_mapping", "mapping"}
_NOT_OBJECTS = {"client_id", "instance_id", "example_id", "name_or_id"}


def declared() -> Iterator[tuple[Route, str, str]]:
    """What is declared of every HTTP operation, its method and path (`/a/{name}`), in the order of registration."""
    app = application()
    for rule in app.url_map.iter_rules():
        said = getattr(app.view_functions[rule.endpoint], "route", None)
        if said is not None and not said.websocket:
            path = re.sub(r"<(?:[^:<>]*:)?([^<>]*)>", r"{\1}", rule.rule)
            yield from ((said, method, path) for method in said.methods)


def id_places() -> Iterator[Place]:
    """Of every HTTP route, in the order of their registration."""
    for said, method, path in declared():
        for name in re.findall(r"\{([^}]*)\}", path):
            yield Place(method, path, PATH, (name,))
        for where, place in _of_route(said):
            yield Place(method, path, where, place)


def _of_route(said: Route) -> Iterator[tuple[str, tuple[str, ...]]]:
    for kind in options(said.body):
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            for place in _of_struct(kind):
                yield BODY, place
    for name, kind in said.query.items():
        if isinstance(kind, Search):
            for key in kind.keys:
                if not _NO_ID.search(key):
                    yield SEARCH, (name, key)
        elif kind not in (int, bool) and not _NO_ID.search(name):
            yield QUERY, (name,)


@functools.cache
def _of_struct(kind: type[Any]) -> tuple[tuple[str, ...], ...]:
    hints = typing.get_type_hints(kind)
    found = list(_UNTYPED.get(kind.__name__, ()))
    for field in msgspec.structs.fields(kind):
        for option in options(hints[field.name]):
            found += [(field.encode_name, *rest) for rest in _of_type(option, field.encode_name)]
    return tuple(dict.fromkeys(found))


def _of_type(kind: Any, name: str) -> Iterator[tuple[str, ...]]:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        yield from ((ITEMS, *rest) for rest in _of_type(parts[0], name))
    elif origin is dict:
        if name not in _MAPS_OF_WORDS:
            yield (KEYS,)
        yield from (("x", *rest) for rest in _of_type(parts[1], ""))
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _of_struct(kind)
    elif kind is UUID or (kind is str and (_names_an_id(name) or name in _LISTS_OF_PEOPLE)):
        yield ()


_LISTS_OF_PEOPLE = {"add_users", "remove_users", "allow_list"}


def _names_an_id(name: str) -> bool:
    return bool(_ID.search(name)) and name not in _NOT_OBJECTS


def options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def put(body: Any, path: tuple[str, ...], value: Any) -> Any:
    """`body` with `value` at `path`."""
    if not path:
        return value
    first, rest = path[0], path[1:]
    if first == ITEMS:
        return [put({}, rest, value)]
    if first == KEYS:
        return {value: _GRANT}
    inside = body if isinstance(body, dict) else {}
    return {**inside, first: put(inside.get(first), rest, value)}


_GRANT = "use"
"A value of every map whose keys are people or groups."
