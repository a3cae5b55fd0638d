"""Programs for other machines: /bin/coder-<os>-<arch>[.exe], streamed from files. Public, as upstream's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio
from quart import Blueprint, Response, request

from coder.coderd.http.auth import context
from coder.coderd.http.site import framed
from coder.coderd.services.binaries import Binaries, Binary
from coder.coderd.services.errors import NotFound

blueprint = Blueprint("binaries", __name__, url_prefix="/bin")

_CHUNK = 1 << 18


@blueprint.get("/<name>")
async def get_binary(name: str) -> Response:
    shelf = context().part(Binaries)
    binary = await shelf.find(name)
    if binary is None:
        raise NotFound(f"There is no {name} on this server.", await shelf.explain_missing(name))
    headers = {
        "ETag": binary.etag,
        "X-Original-Content-Length": str(binary.size),
        "Cache-Control": "no-cache",
    }
    if binary.etag in [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]:
        return framed(Response(b"", 304, headers))
    body = b"" if request.method == "HEAD" else _read(binary)
    response = Response(body, 200, headers, content_type="application/octet-stream")
    response.headers["Content-Length"] = str(binary.size)
    return framed(response)


async def _read(binary: Binary) -> AsyncIterator[bytes]:
    async with await trio.open_file(binary.path, "rb") as file:
        while chunk := await file.read(_CHUNK):
            yield chunk
