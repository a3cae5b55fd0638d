"""The documentation under /docs, from the archive in the program: it also works without the internet.

Its files follow the rules of the dashboard's (`dashboard_files.py`): policy, compression, cache.
"""

from __future__ import annotations

import re

from quart import Blueprint, Response, redirect, request

from coder.coderd.http.server.compression import accepts
from coder.coderd.http.site.dashboard_files import FOREVER, framed, from_files
from coder.coderd.services.foundation import documentation

blueprint = Blueprint("documentation", __name__)

_METHODS = ["GET", "HEAD"]
_HASHED = re.compile(r"assets/.*\.[0-9a-f]{8}\.min\.(?:js|css)")
"""Files whose names change with their content."""
_PAGE = '<!doctype html><html lang="en"><head><title>{0}</title></head><body><h1>{0}</h1><p>{1}</p></body></html>'
_NOT_BUILT = _PAGE.format(
    "No documentation",
    "The documentation is not built into this server. Build it with <code>scripts/docs --pack</code>, or set "
    "<code>--docs-url</code> to the address of another copy.",
)
_NO_PAGE = _PAGE.format(
    "No such page", 'The documentation has no page at this address. <a href="/docs/">Start page</a>'
)


@blueprint.route("/docs", methods=_METHODS)
@from_files
async def start() -> Response:
    return framed(redirect("/docs/", 307))  # type: ignore[arg-type]


@blueprint.route("/docs/", defaults={"path": ""}, methods=_METHODS)
@blueprint.route("/docs/<path:path>", methods=_METHODS)
@from_files
async def page(path: str) -> Response:
    member = documentation.find(path)
    if member is None:
        text = _NO_PAGE if documentation.is_built() else _NOT_BUILT
        return framed(Response(text, 404, content_type="text/html; charset=utf-8"))
    zipped = accepts(request.headers.get("Accept-Encoding", ""), "gzip")
    if request.headers.get("If-None-Match", "") == member.tag:
        response = Response(b"", 304)
    else:
        response = Response(member.zipped if zipped else member.data, content_type=member.kind)
        if zipped:
            response.headers["Content-Encoding"] = "gzip"
    response.headers["ETag"] = member.tag
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = FOREVER if _HASHED.fullmatch(path) else "no-cache"
    framed(response)
    policy = response.headers["Content-Security-Policy"]
    response.headers["Content-Security-Policy"] = policy.replace(
        "script-src 'self'", f"script-src 'self' {documentation.script_sources()}"
    )
    return response
