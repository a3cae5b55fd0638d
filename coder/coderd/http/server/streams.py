"""Streams to browsers and the CLI: server-sent events, and JSON messages over a WebSocket.

A source yields values, or None after a while without any (a ping is sent then). Its first value is fetched before the
response starts, so that its refusals still become an ordinary error response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from enum import Enum
from typing import Any, TypeVar

from quart import Response, request, websocket

from coder.api.base import codec
from coder.appproxy.upgrades.handshake import ACCEPT_FAILED, HandshakeRefusal, explain_handshake
from coder.coderd.http.server.auth import context, current_caller
from coder.coderd.http.server.quart_fixes import at_end
from coder.coderd.services.access.recheck_rights import run_while_allowed
from coder.coderd.services.access.session_revocation import (
    CLOSE_CODE,
    RIGHTS_CHANGED,
    SessionEndedError,
)

_T = TypeVar("_T")
_OVER = object()
_PING = b"event: ping\n\n"
_SSE_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


async def sse(source: AsyncIterator[Any], *, ping_first: bool = False) -> Response:
    """Send `event: data` for each value."""
    at_end().push_async_callback(source.aclose)  # type: ignore[attr-defined]
    first = await anext(source, None)
    sessions = context().services.sessions
    caller = current_caller()

    async def events() -> AsyncIterator[bytes]:
        with sessions.opened(caller, by_rights=True) as opened:
            await sessions.confirm(opened)
            if ping_first:
                yield _PING
            yield _event(first)
            try:
                while (value := await opened.run(anext, source, _OVER)) is not _OVER:
                    yield _event(value)
            except SessionEndedError:
                return

    return Response(events(), 200, _SSE_HEADERS, content_type="text/event-stream")


async def while_allowed(ask: Callable[[], Awaitable[_T]], follow: Callable[[_T], Awaitable[object]]) -> None:
    """Serve a WebSocket about the object that `ask` returns, for as long as `ask` succeeds."""
    if not await run_while_allowed(context(), ask, follow):
        await websocket.close(CLOSE_CODE, RIGHTS_CHANGED)


def _event(value: Any) -> bytes:
    return _PING if value is None else b"event: data\ndata: " + codec.encode(value) + b"\n\n"


def _twin(value: Any) -> Any:
    """Return nothing for a pause: a WebSocket is kept alive by its own ping frames."""
    return None if value is None else {"type": "data", "data": value}


async def events_over_websocket(source: AsyncIterator[Any], *, ping_first: bool = False) -> None:
    """Send the WebSocket form of `sse`: `{"type": "data", "data": value}`."""
    await over_websocket(source, _twin, ping_first=ping_first)


async def over_websocket(
    source: AsyncIterator[Any], shape: Callable[[Any], Any] | None = None, *, ping_first: bool = False
) -> None:
    """Send one text message for each value (converted by `shape`); close with 1000 when the source ends.

    Without a shape None sends nothing. Quart cancels us when the client disconnects.
    """
    async with aclosing(source) as values:  # type: ignore[type-var]
        first = await anext(values, None)
        await websocket.accept()
        if ping_first:
            await _send({"type": "ping", "data": None})
        await _send_shaped(first, shape)
        async for value in values:
            await _send_shaped(value, shape)
    if context().stopping.is_set():
        await websocket.close(1001, "the server is stopping")
    else:
        await websocket.close(1000, "")


async def _send_shaped(value: Any, shape: Callable[[Any], Any] | None) -> None:
    text = value if shape is None else shape(value)
    if text is not None:
        await _send(text)


async def _send(value: Any) -> None:
    await websocket.send(codec.encode(value).decode())


class UpgradeRefusal(Enum):
    """Message of a stream requested without a WebSocket handshake, and what begins its detail."""

    RPC = ACCEPT_FAILED, ""
    EVENTS = "Internal error setting up server-sent events.", "cannot establish connection: "
    NOTICES = "Failed to upgrade connection to websocket.", ""
    FORM = "Failed to accept WebSocket.", ""


def needs_upgrade(refusal: UpgradeRefusal = UpgradeRefusal.RPC) -> Response:
    """Refuse a stream requested without a WebSocket handshake: upstream's 426, a line and then JSON."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    found = explain_handshake("GET", headers, any_origin=True) or HandshakeRefusal(426, "no WebSocket handshake")
    return Response(
        found.body_with(*refusal.value),
        426,
        {"Connection": "Upgrade", "Upgrade": "websocket"},
        content_type="text/plain; charset=utf-8",
    )
