"""Types of JSON documents: what `json` and msgspec read, and what they can write.

A document that was read is a `Json` until its parts are checked: a value is narrowed by `isinstance`, as by `as_object`
and its kin. A struct's field of this type decodes any value: msgspec has no recursive alias, so that it is given the
type of an unchecked value instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
else:
    from typing import Any as Json
"""A JSON value. Containers are read-only here, so that a `dict[str, int]` is one, too."""
JsonObject: TypeAlias = dict[str, Json]


def as_object(value: Json) -> Mapping[str, Json]:
    """Return an object, or an empty one for any other value."""
    return value if isinstance(value, Mapping) else {}


def checked_object(value: Json) -> Mapping[str, Json]:
    """Return an object; null and empty values are an empty one. Raises TypeError for any other value."""
    if not value:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError("an object is required")
    return value


def checked_list(value: Json) -> Sequence[Json]:
    """Return a list; null and empty values are an empty one. Raises TypeError for any other value."""
    if not value:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError("a list is required")
    return value


def as_list(value: Json) -> Sequence[Json]:
    """Return a list, or an empty one for any other value."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def as_text(value: Json) -> str:
    """Return a text, or an empty one for any other value."""
    return value if isinstance(value, str) else ""
