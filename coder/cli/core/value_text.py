"""Values of files in the API's form: texts as the user wrote them, lists and maps as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.base.written_text import read_written
from coder.base.yaml_documents import YamlError, read_document

if TYPE_CHECKING:
    from coder.domain.hcl.values import Value


class Number(str):
    """A number in JSON with its digits: `1.10` is a version to some readers."""

    __slots__ = ()


def milliseconds(value: timedelta) -> int:
    """Return a duration as the API has it."""
    return int(value.total_seconds() * 1000)


def read_values(path: Path, kind: str) -> dict[str, Json]:
    """Read a YAML file of `name: value` lines: texts, lists, maps and None. Raise CoderError with the code `kind`."""
    try:
        content = read_document(read_written(path))
    except OSError as error:
        raise CoderError(kind, f"cannot read {kind}s from {path}") from error
    except UnicodeError as error:
        raise CoderError(kind, f"cannot read {kind}s from {path}", "Save it as UTF-8.") from error
    except YamlError as error:
        raise CoderError(kind, f"cannot read {kind}s from {path}: {error}", "It must be YAML.") from None
    if content is not None and not isinstance(content, dict):
        raise CoderError(kind, f"{path} must have one `name: value` per line")
    return content or {}


def read_json(text: str | bytes) -> Json:
    """Parse JSON; numbers keep their digits. Raise ValueError."""
    value: Json = json.loads(text, parse_float=Number, parse_int=Number)
    return value


def value_text(value: Json) -> str | None:
    """Return the text of a parameter's value, a scalar or JSON; None for null."""
    return None if value is None else str(value) if isinstance(value, str) else _encoded(value, _json)


def expression_text(value: Value) -> str | None:
    """Return the text of a variable's value, a scalar or an expression of Terraform's language; None for null."""
    return None if value is None else str(value) if isinstance(value, str) else _encoded(value, _literal)


def _encoded(value: Value, scalar: Callable[[Value], str]) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{scalar(str(key))}:{_encoded(item, scalar)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_encoded(item, scalar) for item in value) + "]"
    return value if isinstance(value, Number) else scalar(value)


def _json(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False)


def _literal(value: Value) -> str:
    from coder.domain.hcl.literals import text_literal

    return text_literal(value) if isinstance(value, str) else json.dumps(value)
