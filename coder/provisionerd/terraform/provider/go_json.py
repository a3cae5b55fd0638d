"""Parser of JSON lists with the error messages of Go's encoding/json.

Only result and message imitate Go; Python decodes.
"""

from __future__ import annotations

import json
from typing import TypeVar

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.domain.foundation.go_json import explain_rest, explain_type

T = TypeVar("T")


class GoJsonError(CoderError):
    def __init__(self, message: str) -> None:
        super().__init__("bad_json", message)


_GO_NAMES: dict[type, str] = {str: "string", dict: "struct"}


def decode_list(text: str, item: type[T]) -> list[T]:
    """Return a list of `item`s; JSON null is an empty list. Raises GoJsonError."""
    try:
        value: Json = json.loads(text)
    except json.JSONDecodeError as error:
        raise GoJsonError(explain_rest(text.encode()) or str(error)) from error
    if value is None:
        return []
    if not isinstance(value, list):
        raise GoJsonError(explain_type(value, f"[]{_GO_NAMES[item]}"))
    for entry in value:
        if entry is not None and not isinstance(entry, item):
            raise GoJsonError(explain_type(entry, _GO_NAMES[item]))
    return [item() if entry is None else entry for entry in value]
