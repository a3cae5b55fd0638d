"""Every place of a request in which a text can stand, read from what the routes declare: `id_places` for any text."""

from __future__ import annotations

import datetime
import enum
import re
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.kit.id_places import BODY, ITEMS, KEYS, PATH, QUERY, SEARCH, Place, declared, options

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
