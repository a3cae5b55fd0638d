"""Generate the pages of the REST API from the OpenAPI document, each operation with a curl example."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from coder.api.base import codec
from coder.coderd.app import describe_api

Json = Any
_METHODS = ("get", "post", "put", "patch", "delete")
_OMITTED = {"unsupported"}
"""Operations of upstream's features that this server answers with a refusal."""
_HEADERS = {
    "CoderSessionToken": "Coder-Session-Token: $CODER_SESSION_TOKEN",
    "CoderProvisionerKey": "Coder-Provisioner-Daemon-Key: $CODER_PROVISIONER_DAEMON_KEY",
    "CoderProxyToken": "Coder-External-Proxy-Token: $CODER_PROXY_SESSION_TOKEN",
    "Authorization": "Authorization: Bearer $TOKEN",
}
_NOT_RUN = re.compile(
    r"-X |<|AGENT_TOKEN|DAEMON_KEY|PROXY_SESSION|\$TOKEN|/oauth2|/oidc|/github|auth-redirect|users/login|/scim/|/swagger"
    r"|well-known/oauth|debug-link|field-val"
)
"""Examples that change something, or need an object, another token, a provider or an experiment."""
_ANSWERED = re.compile(r"2\d\d|101|30[1-8]")
_INTRODUCTION = """# REST API

The API of Coder v2.34 below `/api/v2`. With `--swagger-enable` the server describes itself: `/swagger` in the
browser, `/swagger/doc.json` as OpenAPI. Create a token and set the two variables that all examples use:

```sh
export CODER_URL=https://coder.example.com
export CODER_SESSION_TOKEN=$(coder tokens create --name api)
curl -fsS -H "Coder-Session-Token: $CODER_SESSION_TOKEN" "$CODER_URL/api/v2/users/me"
```

| status | meaning |
| --- | --- |
| 400 | the request is invalid; `validations` names the fields |
| 401 | no session, or an expired one |
| 403 | you can see the object but may not do this |
| 404 | no such object, or you may not see it |
| 409 | a conflict with another object or request |
| 429 | the limit of requests a minute is used up; `Retry-After` has the seconds |

Times are RFC 3339 in UTC, ids are UUIDs, `me` stands for yourself in paths with `{user}`. Lists take `limit` and
`offset`, or `after_id`. `<word>` in an example stands for your value.

"""


def api_pages(note: str) -> dict[str, str]:
    """Return one page for each group of operations, and an index."""
    document = json.loads(codec.encode(describe_api()))
    schemas = document["components"]["schemas"]
    groups: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method in _METHODS:
            operation = operations.get(method)
            if operation is None or _OMITTED & set(operation["tags"]):
                continue
            groups.setdefault(operation["tags"][0], []).append(_operation(method, path, operation, schemas))
    pages = {}
    rows = []
    for tag, parts in sorted(groups.items()):
        name = f"{tag.replace(' ', '-')}.md"
        pages[name] = f"{note}# API: {tag}\n\n[REST API](README.md) explains tokens, errors and lists.\n\n" + "\n".join(
            parts
        )
        rows.append(f"| [{tag}]({name}) | {len(parts)} |")
    index = "\n".join(["| group | operations |", "| --- | --- |", *rows])
    return {"README.md": f"{note}{_INTRODUCTION}{index}\n"} | pages


def _operation(method: str, path: str, operation: Mapping[str, Json], schemas: Mapping[str, Json]) -> str:
    parameters = operation.get("parameters", [])
    lines = [
        f"## {method.upper()} {path}\n",
        f"{operation['summary']}. {operation.get('description', '')}".strip() + "\n",
    ]
    body = _body(operation, schemas)
    if {"101", "426"} & set(operation.get("responses", ())):
        lines.append(f"WebSocket or upgrade: `{path}`, with the header `{_header(path, operation)}`.\n")
    else:
        example = _curl(method, path, operation, body, schemas)
        mark = "<!-- not run: reference -->\n" if _NOT_RUN.search(example) else ""
        lines.append(f"{mark}```sh\n{example}\n```\n")
    rows = [_parameter_row(item) for item in parameters if item["in"] == "query"]
    rows += _body_rows(body)
    if rows:
        lines += ["| name | in | type | meaning |", "| --- | --- | --- | --- |", *rows, ""]
    lines.append(_answer(operation) + "\n")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _parameter_row(item: Mapping[str, Json]) -> str:
    required = "required. " if item.get("required") else ""
    text = _cell(required + item.get("description", "")).strip() or "-"
    return f"| `{item['name']}` | query | {_type(item['schema'])} | {text} |"


def _body(operation: Mapping[str, Json], schemas: Mapping[str, Json]) -> Mapping[str, Json]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return _resolved(content.get("schema", {}), schemas)


def _resolved(schema: Mapping[str, Json], schemas: Mapping[str, Json]) -> Mapping[str, Json]:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return schema


def _body_rows(body: Mapping[str, Json]) -> list[str]:
    required = set(body.get("required", ()))
    return [
        f"| `{name}` | body | {_type(schema)} | {'required' if name in required else '-'} |"
        for name, schema in body.get("properties", {}).items()
    ]


def _type(schema: Mapping[str, Json]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(item) for item in schema[key])
    if "enum" in schema:
        return " or ".join(f"`{item}`" for item in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or kind) if isinstance(kind, str) else " or ".join(kind)


def _curl(
    method: str, path: str, operation: Mapping[str, Json], body: Mapping[str, Json], schemas: Mapping[str, Json]
) -> str:
    target = re.sub(r"{(\w+)}", r"<\1>", path).replace("<user>", "me")
    needed = [
        item["name"] for item in operation.get("parameters", []) if item["in"] == "query" and item.get("required")
    ]
    target += "?" + "&".join(f"{name}=<{name}>" for name in needed) if needed else ""
    words = ["curl -fsS"]
    words += [] if method == "get" else [f"-X {method.upper()}"]
    header = _header(path, operation)
    words += [f'-H "{header}"'] if header else []
    line = " ".join([*words, f'"$CODER_URL{target}"'])
    if body.get("properties"):
        example = json.dumps(_example(body, schemas, 0))
        line += f" \\\n  -H 'Content-Type: application/json' -d '{example}'"
    return line


def _header(path: str, operation: Mapping[str, Json]) -> str:
    """Return the header of a request: the operation's first way to authenticate, a session if it may answer 401."""
    ways = [name for way in operation.get("security", ()) for name in way]
    if not ways and "401" not in operation.get("responses", ()):
        return ""
    header = _HEADERS[ways[0] if ways else "CoderSessionToken"]
    return header.replace("SESSION_TOKEN", "AGENT_TOKEN") if "/workspaceagents/me/" in path else header


_SAMPLES = {"integer": 0, "number": 0, "boolean": False, "object": {}, "null": None}


def _example(schema: Mapping[str, Json], schemas: Mapping[str, Json], depth: int, name: str = "value") -> Json:
    """Return a body with the required fields, or with the first field if none is required."""
    schema = _resolved(schema, schemas)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _example(schema[key][0], schemas, depth, name)
    if "enum" in schema:
        return schema["enum"][0]
    properties = schema.get("properties")
    if properties and depth < 3:
        chosen = [item for item in properties if item in set(schema.get("required", ()))] or list(properties)[:1]
        return {item: _example(properties[item], schemas, depth + 1, item) for item in chosen}
    kind = schema.get("type", "string")
    if kind == "array":
        return [_example(schema.get("items", {}), schemas, depth + 1, name)] if depth < 3 else []
    return _SAMPLES.get(kind, f"<{name}>") if isinstance(kind, str) else f"<{name}>"


def _answer(operation: Mapping[str, Json]) -> str:
    parts = []
    for status, answer in operation.get("responses", {}).items():
        if not _ANSWERED.fullmatch(status):
            continue
        kinds = [
            _type(content["schema"]) if "schema" in content else media
            for media, content in answer.get("content", {}).items()
        ]
        parts.append(f"{status} {answer.get('description', '')}".strip() + (f", {' or '.join(kinds)}" if kinds else ""))
    return f"Response: {'; '.join(parts)}." if parts else "Response: see the status table."
