"""WebSocket (RFC 6455) as a byte stream and as messages, for both roles, on any trio stream.

No extensions are offered or accepted: the data is encrypted or compressed already, and masking costs enough. Framing is
wsproto's; this file keeps the connection alive and maps its ends to trio's errors.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Iterable

import trio
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from coder.base.retry import wait_answer
from coder.base.threads import QuickLock
from coder.net.bounded_http import PIECES
from coder.net.errors import HttpError, NetError
from coder.net.http1 import UPGRADE_TIMEOUT, Headers, upgrade
from coder.net.masking import masked
from coder.net.policy import DialPolicy
from coder.net.quick_socket import QuickSocket
from coder.net.websocket_frames import FrameSplitter, encode_binary

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3
CLOSE_TIMEOUT = 2.0
"Seconds we wait for the peer's close frame; a dead peer must not hold a shutdown."
MAX_FRAMES = 10_000
"""Frames of one message: no known sender uses more, and empty ones cost as much as others. Go's library, which cuts at
4 KiB, gets forty megabytes through."""


class WebSocketStream(trio.abc.HalfCloseableStream):
    """A WebSocket after its handshake.

    As a stream: binary messages are concatenated as they come, boundaries mean nothing, close 1000/1001 is EOF, any
    other end is `trio.BrokenResourceError`. As messages: `receive_message` / `send_message`. Do not mix the two.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        *,
        client: bool,
        subprotocol: str = "",
        initial: bytes = b"",
        max_message: int | None = None,
        binary_only: bool = False,
        transport: str = "websocket",
    ) -> None:
        self._stream = stream
        self.transport = transport
        "Kind of transport: `websocket` by an upgrade, `stream` carried by plain requests."
        self._ws = Connection(ConnectionType.CLIENT if client else ConnectionType.SERVER)
        self._is_client = client
        self._frames = FrameSplitter(masked=not client, max_message=max_message)
        self._is_parsing = False
        "Whether the parser may have events: it got bytes."
        self.subprotocol = subprotocol
        self.close_code: int | None = None
        self.close_reason = ""
        self._max_message = max_message
        self._binary_only = binary_only
        self._send_lock = QuickLock()
        self._receive_lock = QuickLock()
        self._buffer = b""
        self._partial = bytearray()
        "Buffer of a partial message, of text as UTF-8: separate pieces cost fifty times their content."
        self._partial_size = self._partial_frames = 0
        self._events = 0
        self._pongs: dict[bytes, trio.Event] = {}
        self._broken = False
        self._socket = QuickSocket.of(stream)
        self._unsent = b""
        "Rest of a frame that the socket did not take at once."
        if initial:
            self._frames.receive_untrusted(initial)

    # ---- byte stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self._buffer:
            while True:
                message = await self._receive(pieces=True)
                if message is None:
                    if self.close_code in {1000, 1001, None}:
                        return b""
                    raise trio.BrokenResourceError(f"websocket closed: {self.close_code} {self.close_reason}")
                if message:
                    self._buffer = message if isinstance(message, bytes) else message.encode()
                    break
        if max_bytes is None or max_bytes >= len(self._buffer):
            data, self._buffer = self._buffer, b""
        else:
            data, self._buffer = self._buffer[:max_bytes], self._buffer[max_bytes:]
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._send_binary(bytes(data))

    @property
    def may_send_now(self) -> bool:
        """Whether `send_now` may be called: on a plain socket that nothing else is written to."""
        return (
            self._socket is not None
            and not self._unsent
            and not self._broken
            and not self._send_lock.locked()
            and self._ws.state is ConnectionState.OPEN
        )

    def send_now(self, data: bytes) -> bool:
        """Send a message without waiting, when `may_send_now`. False: a rest is left for `send_rest`, which also raises
        what went wrong."""
        frame, sent = encode_binary(data, masked=self._is_client), 0
        try:
            sent = self._socket.write_now(frame) if self._socket is not None else 0
        except OSError:
            self._broken = True
            return False
        self._unsent = frame[sent:]
        return sent == len(frame)

    async def send_rest(self) -> None:
        """Send the rest, if any. Raises trio.BrokenResourceError."""
        async with self._send_lock:
            if self._broken:
                raise trio.BrokenResourceError("websocket is broken")
            if self._unsent:
                await self._write(b"")

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Close the WebSocket, which has no half close: the close frame ends both directions."""
        await self.close(1000, "")

    async def aclose(self) -> None:
        try:
            await self.close(1000, "")
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    # ---- messages

    async def receive_message(self) -> bytes | str | None:
        """Return the next whole message; None when the peer closed. Pings are answered on the way."""
        return await self._receive(pieces=False)

    async def _receive(self, *, pieces: bool) -> bytes | str | None:
        """Return a message, with `pieces` also a part of one that has not ended.

        A peer must not make a stream collect for ever.
        """
        async with self._receive_lock:
            await self._rest()
            while self.close_code is None:  # data after a refusal is not accepted as a message
                message = await self._next_parsed(pieces) if self._is_parsing else None
                if message is None and not self._is_over():
                    message = await self._next_frame()
                if message is not None:
                    return message
            return None

    async def _next_frame(self) -> bytes | None:
        """Take the next frame, or read more. Return a message of one frame; the parser gets any other."""
        part = self._frames.next_part()
        if part is None:
            await self._read_more()
            return None
        is_message, data = part
        if is_message:
            self._events += 1
            return data
        self._parse(data)
        return None

    def _parse(self, data: bytes | None) -> None:
        """Give bytes to the parser, None at their end."""
        self._is_parsing = True
        try:
            self._ws.receive_data(data)
        except LocalProtocolError as error:
            raise trio.BrokenResourceError("websocket is closed") from error

    def _is_over(self) -> bool:
        return self.close_code is not None

    async def send_message(self, message: bytes | str) -> None:
        if isinstance(message, str):
            await self._send_event(TextMessage(data=message))
        else:
            await self._send_binary(message)

    async def ping(self, timeout: float) -> bool:
        """Return True when the peer answered within `timeout` seconds; another task must be receiving meanwhile."""
        payload = secrets.token_bytes(8)
        answered = self._pongs[payload] = trio.Event()
        try:
            deadline = trio.current_time() + timeout
            with trio.move_on_at(deadline):
                await self._send_event(Ping(payload=payload))
            return await wait_answer(answered, max(deadline - trio.current_time(), 0.0))
        finally:
            self._pongs.pop(payload, None)

    async def close(self, code: int, reason: str) -> None:
        """Send a close frame if none was sent and wait shortly for the peer's."""
        with trio.move_on_after(CLOSE_TIMEOUT):
            try:
                if self._may_send():
                    await self._send_event(CloseConnection(code=code, reason=reason[:120]))
                if self._awaits_close() and not self._receive_lock.locked():
                    while await self._receive(pieces=True) is not None:
                        pass
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # the peer did not wait for our close frame

    # ---- inside

    def _may_send(self) -> bool:
        return self._ws.state in {ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING}

    def _awaits_close(self) -> bool:
        return self._ws.state is ConnectionState.LOCAL_CLOSING

    async def _send_event(self, event: TextMessage | Ping | Pong | CloseConnection) -> None:
        async with self._send_lock:
            if self._broken:
                raise trio.BrokenResourceError("websocket is broken")
            try:
                data = self._ws.send(event)
            except LocalProtocolError as error:
                raise trio.BrokenResourceError("websocket is closed") from error
            await self._write(data)

    async def _send_binary(self, data: bytes) -> None:
        async with self._send_lock:
            if self._broken:
                raise trio.BrokenResourceError("websocket is broken")
            if self._ws.state is not ConnectionState.OPEN:
                raise trio.BrokenResourceError("websocket is closed")
            await self._write(encode_binary(data, masked=self._is_client))

    async def _write(self, data: bytes) -> None:
        data, self._unsent = self._unsent + data, b""
        try:
            await self._stream.send_all(data)
        except BaseException:
            # Part of a frame may be on the wire: no further frame can be sent on this connection.
            self._broken = True
            raise

    async def _read_more(self) -> None:
        try:
            data = await (self._stream.receive_some(65536) if self._socket is None else self._socket.read(65536))
        except trio.ClosedResourceError:
            raise
        except trio.BrokenResourceError:
            self.close_code, self.close_reason = 1006, "connection broke"
            raise
        if not data:
            # TCP ended without a close frame.
            self.close_code = self.close_code or 1006
            self._parse(None)
        else:
            self._frames.receive_untrusted(bytes(data))

    async def _next_parsed(self, pieces: bool) -> bytes | str | None:
        try:
            for event in self._ws.events():
                self._events += 1
                message = await self._on_event(event, pieces)
                if message is not None or self.close_code is not None:
                    return message
                await self._rest()  # no part of this event can be lost any more
            self._is_parsing = False
        except RemoteProtocolError as error:
            await self._refuse(1002, "protocol error")
            raise trio.BrokenResourceError("the peer broke the WebSocket protocol") from error
        return None

    async def _on_event(self, event: object, pieces: bool) -> bytes | str | None:
        if isinstance(event, BytesMessage | TextMessage):
            if self._binary_only and isinstance(event, TextMessage):
                await self._refuse(1003, "binary messages only")
                return None
            return await self._on_data(event, pieces)
        if isinstance(event, Ping):
            try:
                await self._send_event(event.response())
            except trio.BrokenResourceError:
                pass  # the reader will get the error itself
        elif isinstance(event, Pong):
            waiter = self._pongs.get(bytes(event.payload))
            if waiter is not None:
                waiter.set()
        elif isinstance(event, CloseConnection):
            if self.close_code is None:
                self.close_code, self.close_reason = int(event.code), event.reason or ""
            if self._ws.state is ConnectionState.REMOTE_CLOSING:
                try:
                    await self._send_event(event.response())
                except trio.BrokenResourceError:
                    pass  # the peer closed right after its close frame: RFC 6455 section 7.1.1 allows it
        return None

    async def _rest(self) -> None:
        """Let other tasks run once in so many frames: thirty thousand of them come with one read."""
        if self._events >= PIECES:
            self._events = 0
            await trio.lowlevel.checkpoint()

    async def _on_data(self, event: BytesMessage | TextMessage, pieces: bool) -> bytes | str | None:
        piece = event.data if isinstance(event.data, str) else bytes(event.data)
        size = len(piece) if isinstance(piece, bytes) else len(piece.encode())
        self._partial_size += size
        self._partial_frames += event.frame_finished and not pieces
        if self._max_message is not None and self._partial_size > self._max_message:
            self._forget_partial()
            await self._refuse(1009, f"read limited at {self._max_message} bytes")
            return None
        if self._partial_frames > MAX_FRAMES:
            self._forget_partial()
            await self._refuse(1009, f"read limited at {MAX_FRAMES} frames")
            return None
        if pieces or (event.message_finished and not self._partial):
            if event.message_finished:
                self._forget_partial()
            return piece
        self._partial += piece if isinstance(piece, bytes) else piece.encode()
        if not event.message_finished:
            return None
        whole = bytes(self._partial)
        self._forget_partial()
        return whole.decode() if isinstance(piece, str) else whole

    def _forget_partial(self) -> None:
        self._partial = bytearray()
        self._partial_size = self._partial_frames = 0

    async def _refuse(self, code: int, reason: str) -> None:
        self.close_code, self.close_reason = code, reason
        try:
            await self._send_event(CloseConnection(code=code, reason=reason))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # disconnected already: the code stays for the reader


def accept_key(key: str) -> str:
    """Return Sec-WebSocket-Accept for a Sec-WebSocket-Key (RFC 6455 section 4.2.2)."""
    digest = hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


async def connect_websocket(
    policy: DialPolicy,
    path: str,
    *,
    headers: Headers = (),
    subprotocols: Iterable[str] = (),
    max_message: int | None = None,
    carry: bool = True,
) -> WebSocketStream:
    """Open a WebSocket, carried by plain requests where upgrades do not get through (unless `carry` is off).

    Raises HttpError when the server refuses, NetError when it cannot be reached.
    """
    offered = list(subprotocols)
    learned, origin = policy.learned, policy.origin.netloc
    if carry and learned.strips_upgrades(origin, trio.current_time()):
        return await _carried(policy, path, headers, offered, max_message)
    try:
        return await _upgraded(policy, path, headers, offered, max_message)
    except (HttpError, NetError) as refused:
        from coder.net.carried_stream import may_be_stripped

        if not carry or not await may_be_stripped(policy, refused):
            raise
        try:
            socket = await _carried(policy, path, headers, offered, max_message)
        except HttpError as error:
            # The server itself answered now, past the middlebox that strips upgrades - or it is another implementation.
            if error.is_enveloped and error.status != 404:
                raise
            raise refused from None
        except NetError:
            raise refused from None
        learned.record_stripped(origin, trio.current_time())
        return socket


async def _upgraded(
    policy: DialPolicy, path: str, headers: Headers, offered: list[str], max_message: int | None
) -> WebSocketStream:
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    fields = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", key),
        *_offer(headers, offered),
    ]
    stream, answer, rest = await upgrade(policy, path, fields)
    chosen = answer.get("sec-websocket-protocol", "")
    if answer.get("sec-websocket-accept") != accept_key(key) or (chosen and chosen not in offered):
        await trio.aclose_forcefully(stream)
        raise NetError("protocol", f"{masked(policy.url)} answered the WebSocket handshake wrongly")
    return WebSocketStream(stream, client=True, subprotocol=chosen, initial=rest, max_message=max_message)


async def _carried(
    policy: DialPolicy, path: str, headers: Headers, offered: list[str], max_message: int | None
) -> WebSocketStream:
    from coder.net.carried_stream import connect_carried

    stream, answer = await connect_carried(policy, path, "websocket", headers=_offer(headers, offered))
    chosen = answer.get("sec-websocket-protocol", "")
    return WebSocketStream(stream, client=True, subprotocol=chosen, max_message=max_message, transport="stream")


def _offer(headers: Headers, offered: list[str]) -> list[tuple[str, str]]:
    return [*headers, ("Sec-WebSocket-Protocol", ", ".join(offered))] if offered else list(headers)


async def connect_upgrade(
    policy: DialPolicy, path: str, protocol: str, *, headers: Headers = (), timeout: float = UPGRADE_TIMEOUT
) -> tuple[trio.abc.Stream, dict[str, str], bytes]:
    """Upgrade to a raw protocol such as DERP. Return (stream, response headers, first bytes of the protocol)."""
    return await upgrade(policy, path, [("Upgrade", protocol), ("Connection", "Upgrade"), *headers], timeout)
