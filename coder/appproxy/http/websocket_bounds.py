"""Hypercorn's WebSockets for a long-lived server: bounded, uncompressed, closed when they should be.

1. Compression was agreed to, and a frame was unpacked before anybody counted: 16 KiB became 16 MiB. None is offered.
2. A message above the limit was refused, and its rest went on being collected. Here the connection ends with 1009.
3. A frame against the protocol ended the connection without a close frame that says so.
4. One limit of 16 MiB held for all, with twenty messages on their way. Here the route says how large a message may be
   (`limit`), and three are on their way.
5. The task that pings slept on when the peer had gone, and the connection with it.
6. Frames without anything in them counted for nothing, and eleven thousand that came with one read, or as many pongs,
   let nobody else run. A message has so many at most; others run in between.

Quart's side is `coderd/http/server/quart_fixes.py`. What flows through our own endpoints (`rpc_endpoints`) is framed by
`coder/net/websocket.py`.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, cast

import hypercorn.protocol.h11
import trio
from hypercorn.protocol.events import Event, Request, StreamClosed
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from wsproto.events import CloseConnection, Message, Ping, Pong
from wsproto.frame_protocol import CloseReason

from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.net.bounded_http import PIECES
from coder.net.websocket import MAX_FRAMES

PING = 15.0
"Seconds between ping frames: an idle stream must not look dead to what lies between."


class BoundedWSStream(WSStream):
    """One WebSocket, from its handshake on."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.config = copy.copy(self.config)
        self.config.max_app_queue_size = 1
        self.pinging = trio.CancelScope()
        self._unanswered = False
        self._events = self._frames = 0

    async def handle(self, event: Event) -> None:
        if isinstance(event, Request):
            kept = [pair for pair in event.headers if pair[0].lower() != b"sec-websocket-extensions"]
            event = dataclasses.replace(event, headers=kept)
        await super().handle(event)

    async def _handle_events(self) -> None:
        try:
            for event in self.connection.events():
                self._events += 1
                if self._events % PIECES == 0:
                    await trio.lowlevel.checkpoint()
                if isinstance(event, Message):
                    await self._take(event)
                elif isinstance(event, Ping):
                    await self._send_wsproto_event(event.response())
                elif isinstance(event, Pong):
                    self._probed("success")
                elif isinstance(event, CloseConnection):
                    # Said by the peer, or by wsproto of a frame that is none; an answer to ours needs no other.
                    await self._end(event.response())
        except FrameTooLargeError:
            await self._end(CloseConnection(code=CloseReason.MESSAGE_TOO_BIG))

    async def _take(self, event: Message[Any]) -> None:
        limit = cast("int", self.scope.get("coder_message_limit")) or PUBLIC_LIMIT
        self._frames += event.frame_finished
        if self.buffer.length + len(event.data) > limit or self._frames > MAX_FRAMES:
            raise FrameTooLargeError
        self._frames = 0 if event.message_finished else self._frames
        self.buffer.extend(event)
        if event.message_finished and self.app_put is not None:
            await self.app_put(self.buffer.to_message())
            self.buffer.clear()

    async def _end(self, said: CloseConnection) -> None:
        self.buffer.clear()
        await self._send_wsproto_event(said)
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _send_pings(self) -> None:
        """Until the stream is closed: its task would hold up the end of the connection (5)."""
        with self.pinging:
            while not self.closed:
                self._probed("timeout")
                self._unanswered = True
                await self._send_wsproto_event(Ping())
                await trio.sleep(PING)

    def _probed(self, result: str) -> None:
        """Tells once of each ping how it went; what a peer says unasked is no answer."""
        if self._unanswered:
            self._unanswered = False
            probed = cast("Callable[[str], None] | None", self.scope.get("coder_probed"))
            if probed is not None:
                probed(result)


vars(hypercorn.protocol.h11)["WSStream"] = BoundedWSStream  # hypercorn makes its streams itself
