"""Hypercorn's WebSockets for a long-lived server: bounded, uncompressed, closed correctly.

1. Compression was accepted, and a frame was unpacked before it was counted: 16 KiB became 16 MiB. None is offered.
2. A message above the limit was refused, and its rest was still collected. Here the connection ends with 1009.
3. An invalid frame ended the connection without a close frame that reports it.
4. One limit of 16 MiB held for all, with twenty messages in flight. Here the route sets the size of a message
   (`limit`), and three are in flight.
5. The task that pings kept sleeping after the peer disconnected, and held the connection.
6. Empty frames were not counted, and eleven thousand of them in one read, or as many pongs, blocked all other tasks. A
   message has a maximum of them; other tasks run in between.
7. Bytes that a client sent before the answer to its handshake were refused while the application answered: the second
   answer failed as a defect of the server.

Quart's side is `coderd/http/server/quart_fixes.py`. `coder/net/websocket.py` frames the traffic of our own endpoints
(`rpc_endpoints`).
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Awaitable, Callable
from typing import cast

import hypercorn.protocol.h11
import trio
from hypercorn.config import Config
from hypercorn.protocol.events import Body, Data, Event, Request, StreamClosed
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from hypercorn.typing import AppWrapper, ASGISendEvent, TaskGroup, WorkerContext
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from coder.appproxy.http.request_bounds import PUBLIC_LIMIT
from coder.net.bounded_http import PIECES
from coder.net.websocket import MAX_FRAMES

_ANSWERS = {"websocket.accept", "websocket.close", "websocket.http.response.body"}
PING = 15.0
"""Seconds between ping frames: an idle stream must not look dead to proxies in between."""


class BoundedWSStream(WSStream):
    """WebSocket from its handshake on."""

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        task_group: TaskGroup,
        ssl: bool,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
        send: Callable[[Event], Awaitable[None]],
        stream_id: int,
    ) -> None:
        super().__init__(app, config, context, task_group, ssl, client, server, send, stream_id)
        self.config = copy.copy(self.config)
        self.config.max_app_queue_size = 1
        self.pinging = trio.CancelScope()
        self._unanswered = False
        self._is_answered = False
        "Whether the application has begun to accept or to refuse."
        self._events = self._frames = 0

    async def handle(self, event: Event) -> None:
        if isinstance(event, Request):
            kept = [pair for pair in event.headers if pair[0].lower() != b"sec-websocket-extensions"]
            event = dataclasses.replace(event, headers=kept)
        elif isinstance(event, Body | Data) and not self.closed and not self.handshake.accepted:
            await self._refuse_early()
            return
        await super().handle(event)

    async def _refuse_early(self) -> None:
        """Refuse a handshake whose client sends more before the answer; nothing when the application refuses it, too.
        Of two answers the second would be an error of the connection."""
        if not self._is_answered:
            self.closed = True  # before the answer is sent: the application may answer meanwhile
            await self._send_error_response(400)

    async def app_send(self, message: ASGISendEvent | None) -> None:
        self._is_answered = self._is_answered or message is None or message["type"] in _ANSWERS
        await super().app_send(message)

    async def _handle_events(self) -> None:
        try:
            for event in self.connection.events():
                self._events += 1
                if self._events % PIECES == 0:
                    await trio.lowlevel.checkpoint()
                if isinstance(event, TextMessage | BytesMessage):
                    await self._take(event)
                elif isinstance(event, Ping):
                    await self._send_wsproto_event(event.response())
                elif isinstance(event, Pong):
                    self._probed("success")
                elif isinstance(event, CloseConnection):
                    # From the peer, or from wsproto for an invalid frame; a reply to ours needs no other.
                    await self._end(event.response())
        except FrameTooLargeError:
            await self._end(CloseConnection(code=CloseReason.MESSAGE_TOO_BIG))

    async def _take(self, event: TextMessage | BytesMessage) -> None:
        limit = cast("int", self.scope.get("coder_message_limit")) or PUBLIC_LIMIT
        self._frames += event.frame_finished
        if self.buffer.length + len(event.data) > limit or self._frames > MAX_FRAMES:
            raise FrameTooLargeError
        self._frames = 0 if event.message_finished else self._frames
        self.buffer.extend(event)
        if event.message_finished and self.app_put is not None:
            await self.app_put(self.buffer.to_message())
            self.buffer.clear()

    async def _end(self, event: CloseConnection) -> None:
        self.buffer.clear()
        await self._send_wsproto_event(event)
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _send_pings(self) -> None:
        """Send pings until the stream is closed: otherwise the task would delay the end of the connection (5)."""
        with self.pinging:
            while not self.closed:
                self._probed("timeout")
                self._unanswered = True
                await self._send_wsproto_event(Ping())
                await trio.sleep(PING)

    def _probed(self, result: str) -> None:
        """Report the result of each ping once; an unsolicited pong is no answer."""
        if self._unanswered:
            self._unanswered = False
            probed = cast("Callable[[str], None] | None", self.scope.get("coder_probed"))
            if probed is not None:
                probed(result)


vars(hypercorn.protocol.h11)["WSStream"] = BoundedWSStream  # hypercorn creates its streams itself
