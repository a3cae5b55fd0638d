"""The API's own description, read once for all tests of a process."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coder.api.base import codec
from coder.appproxy.upgrades.raw_links import EndpointTable, RpcEndpoint
from coder.coderd.app import ENDPOINTS, describe_api
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.blueprints import BLUEPRINTS
from coder.coderd.http.server.application import make_application
from coder.coderd.http.server.declarations import declaration_of, route_of
from coder.coderd.services.foundation.context import Context
from tests.conformance.scope import Operation, in_scope

_PARAMETER = re.compile(r"<[^>]*>|\{[^}]*\}")
METHODS = ("get", "post", "put", "patch", "delete")


@functools.cache
def application() -> Any:
    """An application with all routes that no server runs."""
    nothing: Any = None
    context = Context(ServerConfig(), nothing, nothing, "http://localhost:3000", UUID(int=0))
    return make_application(context, BLUEPRINTS)


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
    found = {("GET", _PARAMETER.sub("{}", endpoint.pattern)): endpoint.scope for endpoint in _endpoints()}
    for rule in application().url_map.iter_rules():
        said = route_of(application().view_functions[rule.endpoint])
        if said is not None:
            shape = _PARAMETER.sub("{}", rule.rule)
            found |= {(method, shape): said.scope for method in said.methods or ("GET",)}
    adapter = application().url_map.bind("localhost")

    def scope_of(item: Operation) -> Any:
        shape = (item.method, _PARAMETER.sub("{}", item.path))
        if shape in found:
            return found[shape]
        endpoint, _ = adapter.match(item.path, item.method)  # one of several that a parameter of ours stands for
        return declaration_of(application().view_functions[endpoint]).scope

    return {item.name: scope_of(item) for item in in_scope()}


def _endpoints() -> list[RpcEndpoint]:
    """Where our own processes come in."""
    table = EndpointTable()
    for module in ENDPOINTS:
        module.register(table)
    return table.endpoints
