"""The OpenAPI 3.1 document of an application: its rules, read handler by handler.

Left out are only the pages of the dashboard (`site`), which take every path nobody else wants. Types are the structs
the handlers answer with, described by msgspec.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from coder.api.errors import Response as Envelope
from coder.base.version import BUILD_VERSION
from coder.coderd.http.openapi.inference import UNKNOWN, AnyOf, ListOf, MapOf, Shape, either
from coder.coderd.http.openapi.reading import JSON, Body, Facts, read_handler

Links = Iterable[tuple[str, Any]]
"""Pattern (`/api/v2/workspaceagents/{agent}/coordinate`) and handler of each link."""

_LEFT_OUT = frozenset({"site", "static"})
_PARAMETER = re.compile(r"<(?:[^:<>]*:)?([^<>]*)>")
_VERBS = {"post": "create", "put": "set", "patch": "change"}
_SCHEMES = {
    "CoderSessionToken": ("Coder-Session-Token", "The token of a session or an API token; agents send theirs."),
    "CoderProvisionerKey": ("Coder-Provisioner-Daemon-Key", "The key of a provisioner daemon."),
    "Authorization": ("Authorization", "What the identity provider, or the OAuth2 client, was given."),
}
_RATE_HEADERS = ("Retry-After", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
_REFERENCE = "#/components/schemas/{name}"


@dataclass(slots=True)
class _Operation:
    method: str
    path: str
    tag: str
    name: str
    view: Any
    facts: Facts
    websocket: bool = False


def build_document(app: Any, links: Links = (), server_url: str = "/") -> dict[str, Any]:
    """The document, as plain JSON values. Takes seconds of CPU: call it once, and not in the event loop."""
    operations = sorted(_operations(app, links), key=lambda item: (item.path, item.method, item.websocket))
    types_ = _Types(operations)
    paths: dict[str, dict[str, Any]] = {}
    names = _parameter_names(operations)
    seen: Counter[str] = Counter()
    for item in operations:
        path = _with_names(item.path, names)
        described = _describe(item, path, types_)
        present = paths.setdefault(path, {}).get(item.method)
        if present is not None:  # a page and a WebSocket at the same address
            _merge(present, described)
            continue
        seen[described["operationId"]] += 1
        if seen[described["operationId"]] > 1:
            described["operationId"] += f"_{seen[described['operationId']]}"
        paths[path][item.method] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Coder API",
            "version": BUILD_VERSION,
            "description": "Every refusal is a `Response`: a message, and the fields that were wrong as validations.",
        },
        "servers": [{"url": server_url}],
        "tags": [{"name": name} for name in sorted({item.tag for item in operations})],
        "paths": paths,
        "components": {
            "securitySchemes": {
                name: {"type": "apiKey", "in": "header", "name": header, "description": words}
                for name, (header, words) in _SCHEMES.items()
            },
            "schemas": dict(sorted(types_.components.items())),
        },
    }


def _operations(app: Any, links: Links) -> Iterable[_Operation]:
    read: dict[tuple[Any, bool], Facts] = {}
    before = [view for views in app.before_request_funcs.values() for view in views]
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        tag, _, name = rule.endpoint.rpartition(".")
        if (tag or rule.endpoint) in _LEFT_OUT:
            continue
        key = (view, rule.rule.startswith("/api/"))
        if key not in read:
            read[key] = read_handler(view, before if key[1] else ())
        path = _PARAMETER.sub(r"{\1}", rule.rule)
        for method in sorted({"GET"} if rule.websocket else rule.methods - {"HEAD", "OPTIONS"}):
            yield _Operation(method.lower(), path, tag.replace("_", " "), name, view, read[key], rule.websocket)
    for pattern, handler in links:
        yield _Operation("get", pattern, "links", handler.__name__, handler, read_handler(handler), True)


def _shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def _parameter_names(operations: list[_Operation]) -> dict[str, list[str]]:
    """One set of names for each shape of path: OpenAPI knows `/users/{user}` and `/users/{name}` as the same."""
    names: dict[str, list[str]] = {}
    for item in operations:
        found = [name.strip("_") for name in re.findall(r"\{([^}]*)\}", item.path)]
        names.setdefault(_shape(item.path), found)
    return names


def _with_names(path: str, names: dict[str, list[str]]) -> str:
    wanted = iter(names[_shape(path)])
    return re.sub(r"\{[^}]*\}", lambda _: f"{{{next(wanted)}}}", path)


def _describe(item: _Operation, path: str, types_: _Types) -> dict[str, Any]:
    facts = item.facts
    summary, description = _words(item)
    described: dict[str, Any] = {
        "operationId": f"{item.tag.replace(' ', '_')}.{item.name}",
        "tags": [item.tag],
        "summary": summary,
        "parameters": _parameters(item, path),
        "responses": _responses(item, types_),
    }
    if description:
        described["description"] = description
    if facts.body is not None and item.method not in {"get", "head"}:
        described["requestBody"] = _body(facts.body, types_)
    schemes = sorted(facts.schemes)
    if schemes:
        described["security"] = [{name: []} for name in schemes]
        if 401 not in facts.answers:
            described["security"].append({})  # who comes with nothing is answered, too
    return described


def _words(item: _Operation) -> tuple[str, str]:
    """Summary and description: the handler's docstring, else its name and what its service says of itself."""
    text = inspect.cleandoc(inspect.unwrap(item.view).__doc__ or "")
    head, _, rest = text.partition("\n\n")
    if head and not head.startswith("`"):
        summary = " ".join(head.split())
        return summary.rstrip("."), " ".join(rest.split())
    first, _, others = item.name.partition("_")
    words = f"{_VERBS.get(first, first)} {others.replace('_', ' ')}".strip().capitalize()
    service = inspect.cleandoc(item.facts.service.__doc__ or "") if item.facts.service else ""
    # What it raises is told by the statuses.
    return words, re.sub(r"\s*Raises\b.*", "", " ".join(service.partition("\n\n")[0].split()))


def _parameters(item: _Operation, path: str) -> list[dict[str, Any]]:
    facts = item.facts
    own = re.findall(r"\{([^}]*)\}", item.path)
    found: list[dict[str, Any]] = []
    for name, shown in zip(own, re.findall(r"\{([^}]*)\}", path), strict=True):
        schema = {"type": "string", "format": "uuid"} if name in facts.uuids else {"type": "string", "minLength": 1}
        found.append({"name": shown, "in": "path", "required": True, "schema": schema})
    for name, kind in sorted(facts.query.items()):
        parameter: dict[str, Any] = {"name": name, "in": "query", "schema": _QUERY_SCHEMAS[kind]}
        if name in facts.required_query:
            parameter["required"] = True
        if name == "q" and facts.search_keys:
            parameter["description"] = "Words and `key:value` terms. Keys: " + ", ".join(sorted(facts.search_keys))
        found.append(parameter)
    return found


_QUERY_SCHEMAS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1},
    "boolean": {"type": "boolean"},
    "uuid": {"type": "string", "format": "uuid"},
    "uuids": {"type": "string", "description": "UUIDs with commas between them."},
}


def _responses(item: _Operation, types_: _Types) -> dict[str, Any]:
    found: dict[str, Any] = {}
    answers = dict(item.facts.answers)
    if item.websocket:
        answers[101] = {"": []}
        answers.setdefault(426, {"text/plain": []})
    if "{" in item.path:  # a value no route takes, such as one with an encoded slash
        answers.setdefault(404, {JSON: [Envelope]})
    for status, contents in sorted(answers.items()):
        answer: dict[str, Any] = {"description": _phrase(status)}
        content = {kind: _content(kind, kinds, types_) for kind, kinds in contents.items() if kind}
        if content:
            answer["content"] = content
        if status == 429:
            answer["headers"] = {name: {"schema": {"type": "integer"}} for name in _RATE_HEADERS}
        elif status == 401:
            answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
        found[str(status)] = answer
    return found


def _content(content_type: str, kinds: list[Any], types_: _Types) -> dict[str, Any]:
    return {"schema": types_.schema(either(kinds))} if content_type == JSON else {}


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _body(body: Body, types_: _Types) -> dict[str, Any]:
    schema = types_.schema(body.kind)
    if body.required and "$ref" in schema:
        # Such a field must not be empty either, which only the handler knows.
        schema = {"allOf": [schema, {"required": list(body.required)}]}
    content = {"schema": schema} if body.content_type == JSON else {}
    return {"required": not body.optional, "content": {body.content_type: content}}


def _merge(present: dict[str, Any], other: dict[str, Any]) -> None:
    for status, answer in other["responses"].items():
        present["responses"].setdefault(status, answer)
    known = {(item["in"], item["name"]) for item in present["parameters"]}
    present["parameters"] += [item for item in other["parameters"] if (item["in"], item["name"]) not in known]
    if "security" in other:
        present.setdefault("security", other["security"])


class _Types:
    """The schemas of every type the operations name."""

    def __init__(self, operations: list[_Operation]) -> None:
        wanted: list[Any] = [Envelope]
        for item in operations:
            for contents in item.facts.answers.values():
                for kinds in contents.values():
                    for kind in kinds:
                        _plain(kind, wanted)
            if item.facts.body is not None:
                _plain(item.facts.body.kind, wanted)
        self._wanted = wanted
        schemas, self.components = msgspec.json.schema_components(wanted, ref_template=_REFERENCE)
        self._schemas = list(schemas)

    def schema(self, kind: Any) -> dict[str, Any]:
        """The schema of an inferred type; `{}` (anything) where nothing is known."""
        if kind is UNKNOWN:
            return {}
        if isinstance(kind, ListOf):
            return {"type": "array", "items": self.schema(kind.item)}
        if isinstance(kind, MapOf):
            return {"type": "object", "additionalProperties": self.schema(kind.value)}
        if isinstance(kind, AnyOf):
            options = [self.schema(item) for item in kind.options]
            return {"anyOf": options} if all(options) else {}
        if isinstance(kind, Shape):
            return {
                "type": "object",
                "properties": {name: self.schema(value) for name, value in kind.fields},
                "required": [name for name, _ in kind.fields],
            }
        if kind is None:
            return {"type": "null"}
        for known, schema in zip(self._wanted, self._schemas, strict=True):
            if known == kind:
                return schema
        return {}


def _plain(kind: Any, found: list[Any]) -> None:
    """Collects the Python types inside an inferred one, as far as msgspec knows them."""
    if isinstance(kind, ListOf):
        _plain(kind.item, found)
    elif isinstance(kind, MapOf):
        _plain(kind.value, found)
    elif isinstance(kind, AnyOf):
        for item in kind.options:
            _plain(item, found)
    elif isinstance(kind, Shape):
        for _, value in kind.fields:
            _plain(value, found)
    elif kind is not UNKNOWN and kind is not None and kind not in found and _is_data(kind):
        found.append(kind)


def _is_data(kind: Any) -> bool:
    if typing.get_origin(kind) in {types.UnionType, typing.Union}:
        return all(map(_is_data, typing.get_args(kind)))
    try:
        msgspec.json.schema(kind)
    except (TypeError, NameError, AttributeError):
        return False
    return True
