"""The API's description: /swagger/doc.json, and a page to read it. Only with `--swagger-enable`.

The document is read from the sources of the handlers on the first request, in a thread, and cached. A packaged program
has no sources: it contains the finished document (`scripts/generate-openapi`) as a file of this package.
"""

from __future__ import annotations

from pathlib import Path

import trio
from quart import Blueprint, Quart, Response, current_app, request

from coder.api.base import codec
from coder.api.base.refusals import NotFound
from coder.base.json_types import Json
from coder.coderd.http.server.auth import context
from coder.coderd.http.server.declarations import BYTES, HTML, NOTHING
from coder.coderd.http.server.route import route
from coder.coderd.http.site.dashboard_files import framed
from coder.domain.access.rate_budgets import PUBLIC_ROUTE
from coder.domain.access.route_scopes import PUBLIC

blueprint = Blueprint("swagger", __name__, url_prefix="/swagger")

_FOLDER = Path(__file__).resolve().parent / "openapi"
PACKAGED = _FOLDER / "openapi.json"
"""The finished document of a packaged program; it does not exist in a source tree."""
_TYPES = {
    "page.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}
_OFF = "Swagger documentation is disabled."


class ApiDescription:
    """Description of one server."""

    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._data = b""

    async def read(self, app: Quart) -> bytes:
        async with self._lock:
            if not self._data:
                self._data = await trio.to_thread.run_sync(write_document, app)
        return self._data


def write_document(app: Quart) -> bytes:
    """Return the document as JSON; takes seconds of CPU where it is not packaged."""
    if PACKAGED.is_file():
        return PACKAGED.read_bytes()
    from coder.coderd.http.server.openapi.document import build_document

    return codec.encode(build_document(app, app.config.get("CODER_LINKS", ())))


def _require_enabled() -> None:
    if not context().config.swagger_enable:
        raise NotFound(_OFF)


@route(
    blueprint,
    "GET",
    ("", "/", "/index.html"),
    scope=PUBLIC,
    budget=PUBLIC_ROUTE,
    answers=HTML,
    others={304: NOTHING},
    refuses=(404,),
)
async def page() -> Response:
    """Return the page that shows the API's description."""
    _require_enabled()
    return _file("page.html", "text/html; charset=utf-8")


@route(blueprint, "GET", "/doc.json", scope=PUBLIC, budget=PUBLIC_ROUTE, answers=Json, refuses=(404,))
async def document() -> Response:
    """Return the API's description as an OpenAPI document."""
    _require_enabled()
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    data = await context().services.api.description.read(app)
    return Response(data, content_type="application/json; charset=utf-8")


@route(blueprint, "GET", "/<path:name>", scope=PUBLIC, budget=PUBLIC_ROUTE, answers=BYTES, others={304: NOTHING})
async def asset(name: str) -> Response:
    """Return a file of the page."""
    _require_enabled()
    if name not in _TYPES:
        raise NotFound("Route not found.")
    return _file(name, _TYPES[name])


def _file(name: str, content_type: str) -> Response:
    path = _FOLDER / name
    tag = f'"{path.stat().st_mtime_ns:x}"'
    if request.headers.get("If-None-Match") == tag:
        return framed(Response(b"", 304, {"ETag": tag}))
    return framed(
        Response(path.read_bytes(), 200, {"ETag": tag, "Cache-Control": "no-cache"}, content_type=content_type)
    )
