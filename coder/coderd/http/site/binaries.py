"""Programs for other machines: /bin/coder-<os>-<arch>[.exe], streamed from files. Public, as upstream's.

Each has a checksum (`.sha256`, in the form `sha256sum -c` reads) and a signature (`.asc`) if there is one. Interrupted
downloads resume by ranges (RFC 9110, section 14), one range a request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import trio
from quart import Blueprint, Response, request

from coder.api.base.refusals import NotFound
from coder.api.site.programs import Program
from coder.coderd.http.server.auth import context
from coder.coderd.http.server.declarations import BYTES, HTML, NOTHING, TEXT
from coder.coderd.http.server.json import reply
from coder.coderd.http.server.route import route
from coder.coderd.http.site.dashboard_files import FROM_FILES, framed
from coder.coderd.services.site.binaries import ENCODINGS, Binaries, ServedBinary
from coder.domain.access.rate_budgets import PUBLIC_ROUTE
from coder.domain.access.route_scopes import PUBLIC
from coder.domain.foundation.numbers import decimal

blueprint = Blueprint("binaries", __name__)

_CHUNK = 1 << 18
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


@route(blueprint, "GET", "/api/v2/programs", scope=PUBLIC, answers=list[Program])
async def get_programs() -> Response:
    """Return the available programs: a page that requested each file itself would meet errors for missing ones."""
    return reply(context().services.api.binaries.list_programs())


@route(blueprint, "GET", "/bin/", scope=PUBLIC, budget=PUBLIC_ROUTE, answers=HTML)
async def get_folder() -> Response:
    """Return the folder's list of programs, as upstream's file server does."""
    programs = [program.name for program in context().services.api.binaries.list_programs() if program.available]
    lines = "".join(f'<a href="{name}">{name}</a>\n' for name in sorted(programs))
    return framed(Response(f"<!doctype html>\n<pre>\n{lines}</pre>\n", content_type="text/html; charset=utf-8"))


@route(
    blueprint,
    "GET",
    "/bin/<name>",
    scope=PUBLIC,
    budget=FROM_FILES,
    answers=(BYTES, TEXT),
    others={206: BYTES, 304: NOTHING, 416: NOTHING},
)
async def get_binary(name: str) -> Response:
    shelf = context().services.api.binaries
    if name.endswith((".sha256", ".asc")):
        return await _companion_file(shelf, *name.rsplit(".", 1))
    binary = await shelf.find(name, _accepted(request.headers.get("Accept-Encoding", "")))
    if binary is None:
        raise NotFound(f"There is no {name} on this server.", await shelf.explain_missing(name))
    headers = {
        "ETag": binary.etag,
        "X-Original-Content-Length": str(binary.original_size),
        "Cache-Control": "no-cache",
        "Accept-Ranges": "bytes",
        "Vary": "Accept-Encoding",
    }
    if binary.encoding:
        headers["Content-Encoding"] = binary.encoding
    if binary.matches_etag(request.headers.get("If-None-Match", "")):
        return framed(Response(b"", 304, headers))
    span = _range(binary)
    if span is None:
        return framed(Response(b"", 416, {**headers, "Content-Range": f"bytes */{binary.size}"}))
    first, end = span
    partial = (first, end) != (0, binary.size)
    if partial:
        headers["Content-Range"] = f"bytes {first}-{end - 1}/{binary.size}"
    body = b"" if request.method == "HEAD" else _read(binary, first, end)
    response = Response(body, 206 if partial else 200, headers, content_type="application/octet-stream")
    response.headers["Content-Length"] = str(end - first)
    return framed(response)


async def _companion_file(shelf: Binaries, name: str, kind: str) -> Response:
    binary = await shelf.find(name)
    body = f"{binary.sha256}  {name}\n".encode() if binary and kind == "sha256" else None
    if kind == "asc":
        body = await shelf.signature(name)
    if body is None:
        raise NotFound(f"There is no {name}.{kind} on this server.", await shelf.explain_missing(name, kind))
    return framed(Response(body, 200, {"Cache-Control": "no-cache"}, content_type="text/plain; charset=utf-8"))


def _accepted(header: str) -> tuple[str, ...]:
    """Return the encodings that the client accepts, best first, among those a file may have."""
    refused: set[str] = set()
    named: set[str] = set()
    for part in header.lower().split(","):
        word, _, rest = part.partition(";")
        quality = rest.replace(" ", "").removeprefix("q=")
        (refused if re.fullmatch(r"0(\.0*)?", quality) else named).add(word.strip())
    return tuple(name for name in ENCODINGS if name in named and name not in refused)


def _range(binary: ServedBinary) -> tuple[int, int] | None:
    """Return the first byte and the one after the last; None for a range outside. An invalid header is ignored."""
    whole = (0, binary.size)
    match = _RANGE.fullmatch(request.headers.get("Range", "").replace(" ", ""))
    condition = request.headers.get("If-Range")
    if match is None or match.groups() == ("", "") or (condition is not None and condition != binary.etag):
        return whole
    first, last = (decimal(digits) for digits in match.groups())
    if first is None:
        return (max(0, binary.size - last), binary.size) if last else None
    end = min(binary.size, last + 1 if last is not None else binary.size)
    return (first, end) if first < end else (None if first >= binary.size else whole)


async def _read(binary: ServedBinary, first: int, end: int) -> AsyncIterator[bytes]:
    async with await trio.open_file(binary.path, "rb") as file:
        await file.seek(first)
        left = min(end, binary.cut.size) - first
        while left > 0 and (chunk := await file.read(min(left, _CHUNK))):
            left -= len(chunk)
            yield chunk
    if end > binary.cut.size:
        yield binary.cut.tail[max(0, first - binary.cut.size) : end - binary.cut.size]
