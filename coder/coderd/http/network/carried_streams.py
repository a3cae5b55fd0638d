"""The requests that feed carried streams. The id grants the use of a stream: its opener passed the link's checks."""

from __future__ import annotations

from quart import Blueprint, Response, request

from coder.api.base.refusals import Invalid, NotFound
from coder.coderd.http.server.auth import context, count_request
from coder.coderd.http.server.body_reading import read_for
from coder.coderd.http.server.declarations import BYTES, NOTHING, OCTETS
from coder.coderd.http.server.route import route
from coder.coderd.services.network.carried_streams import FIRST_WAIT, CarriedServerStream
from coder.domain.access.rate_budgets import CARRIED
from coder.domain.access.route_scopes import STREAM
from coder.net.carried_stream import ENDED, MODE, OFFSET, RECEIVED, STREAMS, WAIT, WINDOW

blueprint = Blueprint("carried_streams", __name__)

_PATH = f"{STREAMS}<secret>"
_HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
_BYTES = "application/octet-stream"


@route(
    blueprint, "GET", _PATH, scope=STREAM, budget=CARRIED, answers=BYTES, others={410: NOTHING}, refuses=(400, 404, 409)
)
async def down(secret: str) -> Response:
    """Send bytes from the server: `stream` for as long as they arrive, or one `poll`. 410 after the last bytes."""
    stream = await _find(secret)
    offset, wait = _number(OFFSET), _seconds()
    if stream.has_ended(offset):
        return Response(b"", 410, _HEADERS)
    if request.headers.get(MODE) == "poll":
        return Response(await stream.poll(offset, wait), 200, _HEADERS, content_type=_BYTES)
    return Response(stream.pieces(offset, wait), 200, _HEADERS, content_type=_BYTES)


@route(
    blueprint, "POST", _PATH, scope=STREAM, budget=CARRIED, takes=OCTETS, limit=WINDOW, status=204, refuses=(404, 409)
)
async def up(secret: str) -> Response:
    """Receive bytes from the client; an empty body only acknowledges."""
    stream = await _find(secret)
    with stream.receiving() as coming:
        body = await read_for(coming, WINDOW)
        await stream.feed(_number(OFFSET), body, _number(RECEIVED), ended=ENDED in request.headers)
    return Response(b"", 204, _HEADERS)


@route(blueprint, "DELETE", _PATH, scope=STREAM, budget=CARRIED, status=204, refuses=(404,))
async def end(secret: str) -> Response:
    """End the stream: the client disconnects."""
    (await _find(secret)).abort()
    return Response(b"", 204, _HEADERS)


async def _find(ident: str) -> CarriedServerStream:
    streams = context().services.relay.carried_streams
    try:
        return streams.find(ident)
    except NotFound:
        await count_request(None)
        raise


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
