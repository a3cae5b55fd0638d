"""The JSON syntax of configuration files, converted to the native syntax, so that one parser reads both.

The keys that are blocks follow from a schema that only Terraform has; here a table of the relevant names is sufficient.
Strings are templates, except where Terraform takes them literally: defaults of variables, and files of values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from coder.base.json_types import Json
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.literals import text_literal
from coder.domain.hcl.values import Value, well_formed

_LABELS = {
    "resource": 2,
    "data": 2,
    "ephemeral": 2,
    "variable": 1,
    "output": 1,
    "provider": 1,
    "module": 1,
    "check": 1,
    "locals": 0,
    "terraform": 0,
    "moved": 0,
    "import": 0,
    "removed": 0,
}
"""Top-level blocks and the number of their labels."""
_INNER = {
    "required_providers": 0,
    "backend": 1,
    "cloud": 0,
    "provider_meta": 1,
    "lifecycle": 0,
    "precondition": 0,
    "postcondition": 0,
    "connection": 0,
    "provisioner": 1,
    "dynamic": 1,
    "content": 0,
    "validation": 0,
    "assert": 0,
    "option": 0,
    "prebuilds": 0,
    "expiration_policy": 0,
    "scheduling": 0,
    "schedule": 0,
    "item": 0,
    "healthcheck": 0,
    "metadata": 0,
    "display_apps": 0,
    "resources_monitoring": 0,
    "memory": 0,
    "volume": 0,
}
"Blocks inside others; anything else is an argument."
_COMMENT = "//"
_MAX_DEPTH = 50


def native_syntax_untrusted(text: str, name: str = "") -> str:
    """Return a *.tf.json file in the native syntax. Raises HclError."""
    top = _load(text, name)
    lines: list[str] = []
    for item in top if isinstance(top, list) else [top]:
        if not isinstance(item, dict):
            raise HclError(f"{name}: a JSON object is required")
        for kind, value in item.items():
            if kind in _LABELS:
                lines += _block(kind, _LABELS[kind], value, name, 0)
    return "\n".join(lines) + "\n"


def native_values_untrusted(text: str, name: str = "") -> str:
    """Return a *.tfvars.json file in the native syntax. Raises HclError."""
    top = _load(text, name)
    if not isinstance(top, dict):
        raise HclError(f"{name}: a JSON object is required")
    return "".join(f"{key} = {_value(value, name, 0, literal=True)}\n" for key, value in top.items() if _is_word(key))


def _load(text: str, name: str) -> Value:
    try:
        return well_formed(json.loads(text))
    except (ValueError, RecursionError) as problem:
        raise HclError(f"{name}: invalid JSON: {problem}") from problem


def _block(kind: str, labels: int, value: Json, name: str, depth: int, *outer_labels: str) -> Iterator[str]:
    if depth > _MAX_DEPTH:
        raise HclError(f"{name}: nested too deeply")
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, dict):
            raise HclError(f"{name}: {kind} must be a JSON object")
        if labels:
            for label, inner in item.items():
                if label != _COMMENT:
                    yield from _block(kind, labels - 1, inner, name, depth + 1, *outer_labels, label)
            continue
        yield " ".join([kind, *map(text_literal, outer_labels), "{"])
        for key, inner in item.items():
            yield from _item(kind, key, inner, name, depth + 1)
        yield "}"


def _item(kind: str, key: str, value: Json, name: str, depth: int) -> Iterator[str]:
    if key == _COMMENT:
        return
    if key in _INNER and kind != "locals" and _is_block(value):
        yield from _block(key, _INNER[key], value, name, depth)
    elif not _is_word(key):
        raise HclError(f"{name}: {key!r} is not an argument name")
    elif kind == "variable" and key == "type" and isinstance(value, str):
        yield f"type = {value}"
    else:
        yield f"{key} = {_value(value, name, depth, literal=kind == 'variable' and key == 'default')}"


def _is_block(value: Json) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and all(isinstance(item, dict) for item in value))


def _value(value: Json, name: str, depth: int, *, literal: bool) -> str:
    if depth > _MAX_DEPTH:
        raise HclError(f"{name}: nested too deeply")
    if isinstance(value, str):
        return text_literal(value) if literal else _template(value, name)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item, name, depth + 1, literal=literal) for item in value) + "]"
    if isinstance(value, dict):
        items = (
            f"{text_literal(key) if literal else _key(key, name)} = {_value(item, name, depth + 1, literal=literal)}"
            for key, item in value.items()
        )
        return "{" + ", ".join(items) + "}"
    return json.dumps(value)


def _key(text: str, name: str) -> str:
    result = _template(text, name)
    return result if result.startswith('"') else f"({result})"


def _template(text: str, name: str) -> str:
    """Return a string with its interpolations unchanged; a string that is a single interpolation becomes its
    expression."""
    out: list[str] = []
    at = start = 0
    while at < len(text):
        if text.startswith(("$${", "%%{"), at):
            at += 3
        elif text.startswith(("${", "%{"), at):
            end = _end_of_interpolation(text, at + 2, name)
            if at == 0 and end == len(text) and text[0] == "$" and text[2:3] != "~" and text[-2:-1] != "~":
                return f"({text[2:-1]})"
            out += [_escaped(text[start:at]), text[at:end]]
            at = start = end
        else:
            at += 1
    return '"' + "".join([*out, _escaped(text[start:])]) + '"'


def _end_of_interpolation(text: str, at: int, name: str) -> int:
    """Return the offset after the brace that closes the interpolation opened before `at`."""
    depth, in_string = 1, [False]
    while at < len(text):
        char = text[at]
        if in_string[-1]:
            if char == "\\":
                at += 1
            elif char == '"':
                in_string[-1] = False
            elif text.startswith(("${", "%{"), at):
                in_string.append(False)
                depth, at = depth + 1, at + 1
        elif char == '"':
            in_string[-1] = True
        elif char == "{":
            depth += 1
            in_string.append(False)
        elif char == "}":
            depth -= 1
            in_string.pop()
            if not depth:
                return at + 1
        at += 1
    raise HclError(f"{name}: an interpolation is not closed")


def _escaped(text: str) -> str:
    result = text.replace("\\", "\\\\").replace('"', '\\"')
    return result.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _is_word(text: str) -> bool:
    return bool(text) and all(char.isalnum() or char in "_-" for char in text) and not text[0].isdigit()
