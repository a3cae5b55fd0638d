"""The API's own description, read once for all tests of a process."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coder.api.base import codec
from coder.coderd.app import describe_api
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.server.application import make_application
from coder.coderd.services.foundation.context import Context

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
