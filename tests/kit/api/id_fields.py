"""Every field of a request in which an id, or any text, can stand: paths, bodies, queries, terms of searches, RPC.

HTTP's are read from what the routes declare, RPC's from the descriptors of the services that a server answers. A route
or method that is added brings its fields; the tests that use them have to say what each refers to. Sending is not here.
"""

from __future__ import annotations

import datetime
import enum
import functools
import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from coder.coderd.http.server.declarations import Route, Search
from coder.rpc.proto import agent_pb2, overlay_pb2, provisionerd_pb2, tailnet_pb2
from tests.kit.api.api_description import application

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


_NO_TEXTS = (int, float, bool, bytes, datetime.datetime)


def text_places() -> Iterator[Place]:
    """Of every HTTP route, in the order of their registration."""
    for said, method, path in declared():
        for name in re.findall(r"\{([^}]*)\}", path):
            yield Place(method, path, PATH, (name,))
        for kind in options(said.body):
            for place in dict.fromkeys(texts_of(kind, ())):
                yield Place(method, path, BODY, place)
        for name, kind in said.query.items():
            yield Place(method, path, QUERY, (name,))
            for key in getattr(kind, "keys", ()):
                yield Place(method, path, SEARCH, (name, key))


def texts_of(kind: Any, above: tuple[Any, ...]) -> Iterator[tuple[str, ...]]:
    """Paths of the texts in a value of this type. `above` are the types around it: those within themselves end."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if len(options(kind)) > 1:
        for option in options(kind):
            yield from texts_of(option, above)
    elif origin in (list, tuple, set):
        yield from ((ITEMS, *rest) for rest in texts_of(parts[0], above))
    elif origin is dict or kind is dict:
        yield (KEYS,)
        yield from (("x", *rest) for rest in texts_of(parts[1] if parts else str, above))
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind) if kind not in above else {}
        for field in msgspec.structs.fields(kind):
            yield from ((field.encode_name, *rest) for rest in texts_of(hints.get(field.name, int), (*above, kind)))
    elif not (isinstance(kind, type) and issubclass(kind, (*_NO_TEXTS, enum.Enum, type(None)))):
        yield ()  # texts, ids, words of a list, what may be anything


SERVED = (agent_pb2, tailnet_pb2, provisionerd_pb2, overlay_pb2)
"The fifth protocol, `provisioner`, is spoken between a daemon and its executor; the server takes no part."
_ID_FIELD = re.compile(r"(^|_)(uu)?ids?($|_)|(^|_)(slug|token|process|hash)($|_)")


def methods() -> dict[str, Any]:
    """By `Service.Method`: the descriptor of each."""
    return {
        f"{service.name}.{method.name}": method
        for module in SERVED
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def id_fields() -> dict[str, list[str]]:
    """By `Service.Method`: the dotted paths of the request's fields that are named like an id."""
    return {name: list(dict.fromkeys(_fields(method.input_type))) for name, method in methods().items()}


def _fields(kind: Descriptor, before: tuple[str, ...] = (), inside: frozenset[str] = frozenset()) -> Iterator[str]:
    for field in kind.fields:
        path = (*before, field.name)
        if field.message_type is None:
            if _ID_FIELD.search(field.name):
                yield ".".join(path)
        elif field.message_type.full_name not in inside:
            yield from _fields(field.message_type, path, inside | {field.message_type.full_name})


def request_of(name: str) -> Message:
    return GetMessageClass(methods()[name].input_type)()


def reply_type(name: str) -> type[Message]:
    return GetMessageClass(methods()[name].output_type)


def put_in_message(message: Any, path: str, value: Any) -> None:
    """Sets the field at `path`; lists on the way get one item where they have none."""
    first, _, rest = path.partition(".")
    field = message.DESCRIPTOR.fields_by_name[first]
    if not rest:
        as_bytes = field.type == FieldDescriptor.TYPE_BYTES
        setattr(message, first, value.bytes if as_bytes else str(value))
        return
    inner = getattr(message, first)
    if field.is_repeated:
        inner = inner[0] if len(inner) else inner.add()
    put_in_message(inner, rest, value)
