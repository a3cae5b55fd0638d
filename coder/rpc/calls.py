"""dRPC on trio: the caller's side of calls on a stream, and handlers. The protocol is rpc/drpc.py.

`open_call` makes one call on a fresh stream; `serve_calls` of rpc/serving.py answers the calls that arrive on one, one
after another. Both take any half-closeable stream: a yamux one, or an in-memory pair (provisioner Session). The
transport's end cancels a handler (docs/protocol/rpc.md#calls).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import trio
from google.protobuf.message import DecodeError, Message

from coder.base.quoted import cut
from coder.base.threads import QuickLock, in_thread_or_here
from coder.rpc import drpc
from coder.rpc.answer_limits import ANSWER_LIMITS
from coder.rpc.errors import RpcClosed, RpcError
from coder.rpc.inbox import Inbox
from coder.rpc.message_limits import MessageLimits
from coder.rpc.streams import SharedStream

LARGE_REQUEST = 64 << 10
"Bytes (ours) from which a request is decoded and measured in a thread."
_THREADS = trio.CapacityLimiter(2)
"Threads for large messages; few at a time, because a message of empty elements grows thirtyfold when decoded."

READ_SIZE = 8 * 1024
"Bytes of a read (ours): two thousand empty messages before other tasks run."

Sent = TypeVar("Sent", bound=Message)
Received = TypeVar("Received", bound=Message)


class CallStream(Generic[Sent, Received]):
    """Call as seen by either end: messages out, messages in, either side may stop first.

    Sending and receiving may happen in different tasks, each in one task at a time.
    """

    def __init__(self, stream: trio.abc.HalfCloseableStream, call: drpc.IncomingCall, received: type[Received]) -> None:
        self._stream = stream
        self._call = call
        self._received = received
        self._send_lock = QuickLock()
        self._invoked = False
        self.is_cut = False
        "Whether a cancelled write may have left a part of a message: nothing that follows could be read."
        self._events: list[drpc.Event] = []

    async def send(self, message: Sent) -> None:
        """Send a message. Raises RpcClosed when the peer ended the call, RpcError for a message over 4 MiB."""
        data = message.SerializeToString()
        if len(data) > drpc.MAX_PACKET:
            raise RpcError(0, f"payload was too big: {len(data)} > {drpc.MAX_PACKET}")
        if self._call.sending_ended:
            raise RpcClosed("the other side ended the call")
        self._call.send_message(data)
        await self._flush()

    async def close_send(self) -> None:
        """End sending; receiving continues."""
        self._call.close_send()
        await self._flush()

    async def receive(self) -> Received:
        """Return the next message. Raises trio.EndOfChannel at the clean end, RpcError (also for a message over
        `ANSWER_LIMITS`), RpcClosed."""
        if not self._invoked:
            await self._flush()
        while True:
            event = await self._next_event()
            match event:
                case drpc.MessageReceived(data):
                    return await decode_request(self._received, data, ANSWER_LIMITS)
                case drpc.CallFailed(code, text):
                    raise RpcError(code, cut(text))
                case drpc.SendingEnded() | drpc.Closed():
                    raise trio.EndOfChannel
                case None:
                    if self._call.receiving_ended:
                        raise trio.EndOfChannel
                    raise RpcClosed

    def __aiter__(self) -> CallStream[Sent, Received]:
        return self

    async def __anext__(self) -> Received:
        try:
            return await self.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    async def _next_event(self) -> drpc.Event | None:
        while not self._events:
            if self._call.receiving_ended:
                return None
            try:
                data = await self._stream.receive_some(READ_SIZE)
                if not data:
                    return None
                self._events.extend(self._call.receive_untrusted(bytes(data)))
            except drpc.DrpcError as error:
                raise RpcClosed(f"the peer's call framing is broken: {error}") from error
            except trio.BrokenResourceError as error:
                raise RpcClosed(str(error) or RpcClosed().message) from None
        return self._events.pop(0)

    async def _flush(self) -> None:
        async with self._send_lock:
            if self.is_cut:
                raise RpcClosed("a message of the call was cut off")
            data = self._call.take_output()
            self._invoked = True
            if not data:
                return
            try:
                await self._stream.send_all(data)
            except trio.Cancelled:
                self.is_cut = True
                raise
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise RpcClosed(str(error) or RpcClosed().message) from None


def decode(kind: type[Received], data: bytes) -> Received:
    """Decode a message. Raises RpcError when `data` is not a message of that kind."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise RpcError(0, f"{kind.DESCRIPTOR.full_name} cannot be decoded: {error}") from None
    return message


async def decode_request(kind: type[Received], data: bytes, limits: MessageLimits | None) -> Received:
    """Decode a peer's message and check its limits before any further work. Raises RpcError for an invalid or oversized
    message."""
    if len(data) < LARGE_REQUEST:
        return _decode_within(kind, data, limits)
    return await in_thread_or_here(_decode_within, kind, data, limits, limiter=_THREADS)


def _decode_within(kind: type[Received], data: bytes, limits: MessageLimits | None) -> Received:
    if limits is not None and len(data) >= LARGE_REQUEST and (excess := limits.explain_encoded(kind.DESCRIPTOR, data)):
        raise RpcError(0, f"{kind.DESCRIPTOR.full_name}: {excess}")
    message = decode(kind, data)
    if limits is not None and len(data) > limits.harmless_size(kind.DESCRIPTOR):
        excess = limits.explain_excess(message)
        if excess:
            raise RpcError(0, excess)
    return message


# ---- caller


@asynccontextmanager
async def open_call(
    stream: trio.abc.HalfCloseableStream,
    name: str,
    sent: type[Sent],  # noqa: ARG001 - names the type for checkers and readers
    received: type[Received],
) -> AsyncIterator[CallStream[Sent, Received]]:
    """Open a streaming call on a fresh stream; leaving the block ends it (Close, then the stream's end).

    The invocation is sent with the first message, or with the first wait for one. A cancelled block sends no Close: the
    stream's end alone informs the server, as upstream does.
    """
    call = drpc.IncomingCall()
    call.invoke(name)
    opened: CallStream[Sent, Received] = CallStream(stream, call, received)
    try:
        yield opened
        call.close()
        try:
            with trio.move_on_after(1.0):
                await opened._flush()
        except RpcClosed:
            pass  # ended by the other side meanwhile
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()


async def call_unary(
    stream: trio.abc.HalfCloseableStream, name: str, request: Message, received: type[Received]
) -> Received:
    """Send one request and return its reply, on a fresh stream. Raises RpcError, RpcClosed."""
    call = drpc.IncomingCall()
    opened: CallStream[Message, Received] = CallStream(stream, call, received)
    try:
        call.invoke(name)
        data = request.SerializeToString()
        if len(data) > drpc.MAX_PACKET:
            raise RpcError(0, f"payload was too big: {len(data)} > {drpc.MAX_PACKET}")
        call.send_message(data)
        call.close_send()
        try:
            answer = await opened.receive()
        except trio.EndOfChannel:
            raise RpcClosed("the call ended without an answer") from None
        call.close_answered()
        if isinstance(stream, SharedStream):
            stream.end_later(call.take_output())
            return answer
        try:
            await opened._flush()
        except RpcClosed:
            pass  # the reply has arrived; the Close does not matter
        return answer
    finally:
        await close_stream(stream)


async def close_stream(stream: trio.abc.HalfCloseableStream) -> None:
    """Close a stream, also when cancelled."""
    if isinstance(stream, SharedStream):
        stream.abandon()
        return
    with trio.CancelScope(shield=True):
        await stream.aclose()


# ---- server

ServerWire = CallStream[Message, Message]
"""Stream of a call whose messages have other types from method to method."""


class ServerCall(Generic[Sent, Received]):
    """Streaming call as its handler sees it: `send`, `receive` / `async for`, `close`."""

    def __init__(
        self,
        wire: ServerWire,
        messages: Inbox,
        received: type[Received],
        limits: MessageLimits | None,
    ) -> None:
        self._wire = wire
        self._messages = messages
        self._received = received
        self._limits = limits

    async def send(self, message: Sent) -> None:
        await self._wire.send(message)

    async def receive(self) -> Received:
        """Return the next message. Raises trio.EndOfChannel when the caller sends no more, RpcError for an invalid
        one."""
        return await decode_request(self._received, await self._messages.receive(), self._limits)

    def __aiter__(self) -> ServerCall[Sent, Received]:
        return self

    async def __anext__(self) -> Received:
        try:
            return await self.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None

    async def close(self) -> None:
        """End the call in both directions; the handler may still clean up."""
        self._wire._call.close()
        await self._wire._flush()


class Handler(Protocol):
    """A method of a service. The kinds below differ in the number of messages in either direction."""

    async def answer(self, wire: ServerWire, messages: Inbox, limits: MessageLimits | None) -> None:
        """Answer one call; `messages` are its requests, encoded."""


@dataclass(frozen=True, slots=True)
class Unary(Generic[Received]):
    """Unary handler: `await fn(request)` returns the response."""

    fn: Callable[[Received], Awaitable[Message]]
    request: type[Received]

    async def answer(self, wire: ServerWire, messages: Inbox, limits: MessageLimits | None) -> None:
        await self.answer_request(wire, await _only_message(messages), limits)

    async def answer_request(self, wire: ServerWire, data: bytes, limits: MessageLimits | None) -> None:
        """Answer the encoded request of a call."""
        # The response and the end of sending are flushed together, as upstream's server does.
        response = (await self.fn(await decode_request(self.request, data, limits))).SerializeToString()
        if len(response) > drpc.MAX_PACKET:
            raise RpcError(0, f"payload was too big: {len(response)} > {drpc.MAX_PACKET}")
        if not wire._call.sending_ended:
            wire._call.send_message(response)


@dataclass(frozen=True, slots=True)
class ServerStream(Generic[Sent, Received]):
    """Server-streaming handler: `await fn(request, send)` awaits `send(message)` for each message; returning ends the
    stream."""

    fn: Callable[[Received, Callable[[Sent], Awaitable[None]]], Awaitable[None]]
    request: type[Received]

    async def answer(self, wire: ServerWire, messages: Inbox, limits: MessageLimits | None) -> None:
        await self.fn(await decode_request(self.request, await _only_message(messages), limits), wire.send)


@dataclass(frozen=True, slots=True)
class Bidi(Generic[Sent, Received]):
    """Bidirectional handler: `await fn(call)` with a ServerCall; returning ends the stream. Serves client-streaming
    calls too."""

    fn: Callable[[ServerCall[Sent, Received]], Awaitable[None]]
    request: type[Received]

    async def answer(self, wire: ServerWire, messages: Inbox, limits: MessageLimits | None) -> None:
        await self.fn(ServerCall(wire, messages, self.request, limits))


Handlers = Mapping[str, Handler]


async def _only_message(messages: Inbox) -> bytes:
    try:
        return await messages.receive()
    except trio.EndOfChannel:
        raise RpcError(0, "the call carried no request") from None
