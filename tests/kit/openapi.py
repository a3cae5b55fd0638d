"""The API's own description, read once for all tests of a process."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coder.api.base import codec
from coder.coderd.app import describe_api
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.server.application import make_application
from coder.coderd.http.server.declarations import route_of
from coder.coderd.services.foundation.context import Context
from tests.conformance.scope import in_scope

_PARAMETER = re.compile(r"<[^>]*>|\{[^}]*\}")
METHODS = ("get", "post", "put", "patch", "delete")


@functools.cache
def application() -> Any:
    """An application with all routes that no server runs."""
    nothing: Any = None
    return make_application(Context(ServerConfig(), nothing, nothing, "http://localhost:3000", UUID(int=0)))


@functools.cache
def document() -> dict[str, Any]:
    """As a client reads it: through JSON."""
    found: dict[str, Any] = json.loads(codec.encode(describe_api()))
    return found


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(method in capitals, path, operation) of everything described."""
    for path, methods in document()["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method.upper(), path, methods[method]


def scopes_by_operation() -> dict[str, Any]:
    """What every documented operation asks of a key, by `METHOD /path` with the documents' names of parameters."""
    found = {}
    for rule in application().url_map.iter_rules():
        said = route_of(application().view_functions[rule.endpoint])
        if said is None or said.websocket:
            continue
        for method in said.methods:
            found[method, _PARAMETER.sub("{}", rule.rule)] = said.scope
    return {item.name: found.get((item.method, _PARAMETER.sub("{}", item.path))) for item in in_scope()}
