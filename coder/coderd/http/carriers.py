"""The requests that feed carried streams. The id is the right to use one: its opener passed the link's checks."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.coderd.http.auth import context
from coder.coderd.http.json import read_bytes
from coder.coderd.services.carriers import FIRST_WAIT, Carriers, ServerStream
from coder.coderd.services.errors import Invalid
from coder.net.carrier import ENDED, MODE, OFFSET, RECEIVED, STREAMS, WAIT, WINDOW

blueprint = Blueprint("carriers", __name__)

_PATH = f"{STREAMS}<ident>"
_HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
_BYTES = "application/octet-stream"


@blueprint.get(_PATH)
async def down(ident: str) -> Response:
    """Bytes from the server: `stream` for as long as they come, or one `poll`. 410 when all have been said."""
    stream = _find(ident)
    offset, wait = _number(OFFSET), _seconds()
    if stream.has_ended(offset):
        return Response(b"", 410, _HEADERS)
    if request.headers.get(MODE) == "poll":
        return Response(await stream.poll(offset, wait), 200, _HEADERS, content_type=_BYTES)
    return Response(stream.pieces(offset, wait), 200, _HEADERS, content_type=_BYTES)


@blueprint.post(_PATH)
async def up(ident: str) -> Response:
    """Bytes from the client; an empty body only acknowledges."""
    stream = _find(ident)
    body = await read_bytes(WINDOW)
    await stream.feed(_number(OFFSET), body, _number(RECEIVED), ended=ENDED in request.headers)
    return Response(b"", 204, _HEADERS)


@blueprint.delete(_PATH)
async def end(ident: str) -> Response:
    """The client has left."""
    _find(ident).abort()
    return Response(b"", 204, _HEADERS)


def _find(ident: str) -> ServerStream:
    found: ServerStream = context().part(Carriers).find(ident)
    return found


def _number(name: str) -> int:
    text = request.headers.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise Invalid(f"The header {name} must be a number.")
    return int(text)


def _seconds() -> float:
    try:
        wait = float(request.headers.get(WAIT, FIRST_WAIT))
    except ValueError:
        wait = FIRST_WAIT
    return wait if wait > 0 else FIRST_WAIT  # not a number is not greater either
