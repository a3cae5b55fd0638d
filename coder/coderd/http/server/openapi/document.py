"""The OpenAPI 3.1 document of an application, from the declarations of its routes. Schemas are msgspec's."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from http import HTTPStatus
from typing import NotRequired, TypedDict
from uuid import UUID

import msgspec
from quart import Quart

from coder.api.base.errors import Response as Envelope
from coder.base.json_types import Json, JsonObject
from coder.base.version import BUILD_VERSION
from coder.coderd.http.server.declarations import JSON, Content, JsonShape, Route, Search, Shape, Shapes
from coder.coderd.http.server.openapi.operations import Links, Operation, operations_of, refusals_of
from coder.domain.access.route_scopes import Unscoped, named

_VERBS = {"post": "create", "put": "set", "patch": "change"}
_SCHEMES = {
    "CoderSessionToken": ("Coder-Session-Token", "The token of a session or an API token; agents send theirs."),
    "CoderProvisionerKey": ("Coder-Provisioner-Daemon-Key", "The key of a provisioner."),
    "Authorization": ("Authorization", "What the identity provider, or the OAuth2 client, was given."),
    "CoderProxyToken": ("Coder-External-Proxy-Token", "The token of a workspace proxy."),
}
_SECURITY_SCHEMES = {
    Unscoped.PUBLIC: "",
    Unscoped.STREAM: "",
    Unscoped.PROVISIONER: "CoderProvisionerKey",
    Unscoped.CLIENT: "Authorization",
    Unscoped.APPLICATION: "Authorization",
    Unscoped.PROXY: "CoderProxyToken",
}
"""Security schemes of callers without a key of a user or agent."""
_RATE_HEADERS = ("Retry-After", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset")
_REFERENCE = "#/components/schemas/{name}"


_Parameter = TypedDict(
    "_Parameter",
    {"name": str, "in": str, "required": NotRequired[bool], "schema": JsonObject, "description": NotRequired[str]},
)


class _Described(TypedDict):
    operationId: str
    tags: list[str]
    summary: str
    parameters: list[_Parameter]
    responses: JsonObject
    description: NotRequired[str]
    requestBody: NotRequired[JsonObject]
    security: NotRequired[list[dict[str, list[str]]]]


class Document(TypedDict):
    """OpenAPI document."""

    openapi: str
    info: dict[str, str]
    servers: list[dict[str, str]]
    tags: list[dict[str, str]]
    paths: dict[str, dict[str, _Described]]
    components: dict[str, JsonObject]


def build_document(app: Quart, links: Links = (), server_url: str = "/") -> Document:
    """Return the document as plain JSON values."""
    operations = operations_of(app, links)
    types_ = _Types(operations)
    paths: dict[str, dict[str, _Described]] = {}
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


def _shape(path: str) -> str:
    return re.sub(r"\{[^{}]*\}", "{}", path)


def _parameter_names(operations: list[Operation]) -> dict[str, list[str]]:
    """Use the same names for each shape of path: OpenAPI treats `/users/{user}` and `/users/{name}` as equal."""
    names: dict[str, list[str]] = {}
    for item in operations:
        results = [name.strip("_") for name in re.findall(r"\{([^{}]*)\}", item.path)]
        names.setdefault(_shape(item.path), results)
    return names


def _with_names(path: str, names: dict[str, list[str]]) -> str:
    parameter_names = iter(names[_shape(path)])
    return re.sub(r"\{[^{}]*\}", lambda _: f"{{{next(parameter_names)}}}", path)


def _describe(item: Operation, path: str, types_: _Types) -> _Described:
    declaration = item.route
    described: _Described = {
        "operationId": f"{item.tag.replace(' ', '_')}.{item.name}",
        "tags": [item.tag],
        "summary": _summary(item),
        "parameters": _parameters(item, path),
        "responses": _responses(item, types_),
    }
    words = _words(declaration)
    if words:
        described["description"] = words
    if declaration.limit:
        described["requestBody"] = _body(declaration, types_)
    scheme = (
        _SECURITY_SCHEMES.get(declaration.scope, "CoderSessionToken")
        if isinstance(declaration.scope, Unscoped)
        else "CoderSessionToken"
    )
    if scheme:
        described["security"] = [{scheme: []}]
        if declaration.scope is Unscoped.OPTIONAL:
            described["security"].append({})  # anonymous callers are served, too
    return described


def _summary(item: Operation) -> str:
    """Return the view's name as words."""
    first, _, others = item.name.partition("_")
    return f"{_VERBS.get(first, first)} {others.replace('_', ' ')}".strip().capitalize()


def _words(declaration: Route) -> str:
    """Return the view's docstring, and the scope a key needs."""
    text = " ".join(inspect.cleandoc(declaration.view.__doc__ or "").split())
    scopes = named(declaration.scope)
    return f"{text} Scope: {' or '.join(scopes)}.".strip() if scopes else text


def _parameters(item: Operation, path: str) -> list[_Parameter]:
    declaration = item.route
    own = re.findall(r"\{([^{}]*)\}", item.path)
    results: list[_Parameter] = []
    for name, parameter_name in zip(own, re.findall(r"\{([^{}]*)\}", path), strict=True):
        schema: JsonObject = _QUERY_SCHEMAS[UUID] if name in item.uuids else {"type": "string", "minLength": 1}
        results.append({"name": parameter_name, "in": "path", "required": True, "schema": schema})
    for name, kind in sorted(declaration.query.items()):
        schema = _QUERY_SCHEMAS[str if isinstance(kind, Search) else kind]
        parameter: _Parameter = {"name": name, "in": "query", "schema": schema}
        if name in declaration.wants:
            parameter["required"] = True
        if isinstance(kind, Search):
            parameter["description"] = "Words and `key:value` terms. Keys: " + ", ".join(sorted(kind.keys))
        results.append(parameter)
    return results


_QUERY_SCHEMAS: dict[type, JsonObject] = {
    str: {"type": "string"},
    int: {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1},
    bool: {"type": "boolean"},
    UUID: {"type": "string", "format": "uuid"},
    list[UUID]: {"type": "string", "description": "UUIDs with commas between them."},
}


def _alternatives(answers: Shapes) -> tuple[Shape, ...]:
    return answers if isinstance(answers, tuple) else (answers,)


def _answers(item: Operation) -> dict[int, tuple[Shape, ...]]:
    """Return the possible contents by status."""
    declaration = item.route
    result = {} if declaration.websocket else {declaration.status: _alternatives(declaration.answers)}
    for status, answers in declaration.others.items():
        result[status] = result.get(status, ()) + _alternatives(answers)
    for status in refusals_of(item):
        result.setdefault(status, (Envelope,))
    if declaration.websocket:
        result[101] = ()
        result.setdefault(426, (Content("text/plain"),))
    return result


def _responses(item: Operation, types_: _Types) -> JsonObject:
    results: JsonObject = {}
    for status, answers in sorted(_answers(item).items()):
        answer: JsonObject = {"description": HTTPStatus(status).phrase}
        content: JsonObject = {kind.type: {} for kind in answers if isinstance(kind, Content) and kind.type}
        data = [kind for kind in answers if not isinstance(kind, Content)]
        if data:
            schemas = [types_.schema(kind) for kind in data]
            content[JSON] = {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
        if content:
            answer["content"] = content
        if status == 429:
            answer["headers"] = {name: {"schema": {"type": "integer"}} for name in _RATE_HEADERS}
        elif status == 401:
            answer["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
        results[str(status)] = answer
    return results


def _body(declaration: Route, types_: _Types) -> JsonObject:
    schema = types_.schema(declaration.body)
    if declaration.required and "$ref" in schema:
        # Such a field must not be empty either, which only the handler checks.
        schema = {"allOf": [schema, {"required": list(declaration.required)}]}
    content = {"schema": schema} if declaration.takes == JSON else {}
    return {"required": not declaration.allow_empty, "content": {declaration.takes: content}}


def _merge(present: _Described, other: _Described) -> None:
    for status, answer in other["responses"].items():
        present["responses"].setdefault(status, answer)
    known = {(item["in"], item["name"]) for item in present["parameters"]}
    present["parameters"] += [item for item in other["parameters"] if (item["in"], item["name"]) not in known]
    if "security" in other:
        present.setdefault("security", other["security"])


class _Types:
    """Schemas of every type the operations name."""

    def __init__(self, operations: list[Operation]) -> None:
        parameter_names: list[JsonShape] = [Envelope]
        for item in operations:
            named = [kind for answers in _answers(item).values() for kind in answers]
            for kind in (*named, item.route.body):
                if (
                    kind is not None
                    and kind is not Json
                    and not isinstance(kind, Content)
                    and kind not in parameter_names
                ):
                    parameter_names.append(kind)
        schemas, self.components = msgspec.json.schema_components(parameter_names, ref_template=_REFERENCE)
        self._schemas = list(zip(parameter_names, schemas, strict=True))

    def schema(self, kind: JsonShape | None) -> JsonObject:
        """Return the schema of a declared type; `{}` for any JSON."""
        if kind is None:
            return {"type": "null"}
        return next((schema for known, schema in self._schemas if known == kind), {})
