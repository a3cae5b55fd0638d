"""Upload and download of archives."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import BinaryIO

import trio
from quart import Blueprint, Response, request

from coder.api.base.refusals import Invalid, TooLarge
from coder.api.site.deployment import UploadResponse
from coder.coderd.http.server.auth import context, subject
from coder.coderd.http.server.body_reading import read_file
from coder.coderd.http.server.declarations import BYTES, OCTETS
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.quart_fixes import at_end
from coder.coderd.http.server.query import path_uuid
from coder.coderd.http.server.route import route
from coder.coderd.services.templates import files
from coder.domain.access.rate_budgets import FILES

_CHUNK = 1 << 18
blueprint = Blueprint("files", __name__, url_prefix="/api/v2/files")


@route(
    blueprint,
    "POST",
    "",
    scope="file:create",
    budget=FILES,
    takes=OCTETS,
    limit=files.MAX_UPLOAD,
    answers=UploadResponse,
    status=201,
    others={200: UploadResponse},
)
async def post_file() -> Response:
    """Store the file; return its id, and whether it is new."""
    kind = request.headers.get("Content-Type", "")
    try:
        async with read_file(files.MAX_UPLOAD) as content:
            file_id, new = await files.upload(context(), subject(), kind, content)
    except TooLarge as error:
        raise Invalid("Failed to read file from request.", "http: request body too large") from error
    return reply({"hash": file_id}, 201 if new else 200)


@route(
    blueprint,
    "GET",
    "/<id:file_id>",
    scope=("file:read", "template:update"),
    budget=FILES,
    query={"format": str},
    answers=BYTES,
)
async def get_file(file_id: str) -> Response:
    """Return the archive as stored, or as zip."""
    kind, content = await files.download(context(), subject(), path_uuid(file_id), request.args.get("format", ""))
    at_end().callback(content.close)
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    response = Response(_pieces(content), content_type=kind)
    response.headers["Content-Length"] = str(size)
    response.timeout = None  # a slow line may take any time
    return response


async def _pieces(content: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await trio.to_thread.run_sync(content.read, _CHUNK):
        yield piece
