"""Parser of JSON lists with the error messages of Go's encoding/json.

Only result and message imitate Go; Python decodes.
"""

from __future__ import annotations

import json
from typing import TypeVar

from coder.base.errors import CoderError
from coder.base.json_types import Json

T = TypeVar("T")


class GoJsonError(CoderError):
    def __init__(self, message: str) -> None:
        super().__init__("bad_json", message)


_NAMES: dict[type, str] = {str: "string", int: "number", float: "number", bool: "bool", dict: "object", list: "array"}
_GO_NAMES: dict[type, str] = {str: "string", dict: "struct"}


def decode_list(text: str, item: type[T]) -> list[T]:
    """Return a list of `item`s; JSON null is an empty list. Raises GoJsonError."""
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise GoJsonError(_syntax_sentence(text, error)) from error
    if value is None:
        return []
    if not isinstance(value, list):
        raise GoJsonError(f"json: cannot unmarshal {_NAMES[type(value)]} into Go value of type []{_GO_NAMES[item]}")
    for entry in value:
        if entry is not None and not isinstance(entry, item):
            raise GoJsonError(f"json: cannot unmarshal {_NAMES[type(entry)]} into Go value of type {_GO_NAMES[item]}")
    return [item() if entry is None else entry for entry in value]


def _syntax_sentence(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :].lstrip()
    if not rest:
        return "unexpected end of JSON input"
    char = rest[0]
    quoted = "'\\''" if char == "'" else "'\"'" if char == '"' else f"'{char}'"
    if error.msg.startswith("Extra data"):
        return f"invalid character {quoted} after top-level value"
    if "delimiter" in error.msg and "','" in error.msg:
        return f"invalid character {quoted} after array element"
    return f"invalid character {quoted} looking for beginning of value"
