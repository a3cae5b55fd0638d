"""dRPC on trio: caller and server side of calls on a stream. The protocol is rpc/drpc.py.

`open_call` makes one call on a fresh stream; `serve_calls` answers the calls that arrive on one stream, one after
another. Both take any half-closeable stream: a yamux one, or an in-memory pair (provisioner Session). The transport's
end cancels a handler (docs/protocol/rpc.md#calls).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import trio
from google.protobuf.message import DecodeError, Message

from coder.base.errors import DATABASE_OUTAGES, CoderError, explain_error, find_outage
from coder.base.exception_groups import single_failure
from coder.base.log import STRANGERS_LINES, get_logger
from coder.base.quoted import cut
from coder.base.threads import QuickLock, in_thread_or_here
from coder.rpc import drpc
from coder.rpc.answer_limits import ANSWER_LIMITS
from coder.rpc.errors import UNAVAILABLE, RpcClosed, RpcError
from coder.rpc.inbox import BufferedBytes, Inbox
from coder.rpc.message_limits import MessageLimits

LARGE_REQUEST = 64 << 10
"Bytes (ours) from which a request is decoded and measured in a thread."
_THREADS = trio.CapacityLimiter(2)
"Threads for large messages; few at a time, because a message of empty elements grows thirtyfold when decoded."

_log = get_logger("rpc", per_minute=STRANGERS_LINES)
_READ_SIZE = 8 * 1024
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
        self._events: deque[drpc.Event] = deque()

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
                data = await self._stream.receive_some(_READ_SIZE)
                if not data:
                    return None
                self._events.extend(self._call.receive_untrusted(bytes(data)))
            except drpc.DrpcError as error:
                raise RpcClosed(f"the peer's call framing is broken: {error}") from error
            except trio.BrokenResourceError as error:
                raise RpcClosed(str(error) or RpcClosed().message) from None
        return self._events.popleft()

    async def _flush(self) -> None:
        async with self._send_lock:
            data = self._call.take_output()
            self._invoked = True
            if not data:
                return
            try:
                await self._stream.send_all(data)
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
        try:
            await opened._flush()
        except RpcClosed:
            pass  # the reply has arrived; the Close does not matter
        return answer
    finally:
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
        # The response and the end of sending are flushed together, as upstream's server does.
        response = (await self.fn(await _only_request(self.request, messages, limits))).SerializeToString()
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
        await self.fn(await _only_request(self.request, messages, limits), wire.send)


@dataclass(frozen=True, slots=True)
class Bidi(Generic[Sent, Received]):
    """Bidirectional handler: `await fn(call)` with a ServerCall; returning ends the stream. Serves client-streaming
    calls too."""

    fn: Callable[[ServerCall[Sent, Received]], Awaitable[None]]
    request: type[Received]

    async def answer(self, wire: ServerWire, messages: Inbox, limits: MessageLimits | None) -> None:
        await self.fn(ServerCall(wire, messages, self.request, limits))


Handlers = Mapping[str, Handler]


async def serve_calls(
    stream: trio.abc.HalfCloseableStream,
    handlers: Handlers,
    buffered: BufferedBytes | None = None,
    limits: MessageLimits | None = None,
) -> None:
    """Answer the calls on `stream` until the caller ends it. Failures are sent to the caller, never raised.

    `buffered` is shared by all streams of one peer; `limits` bounds its messages.
    """
    call = drpc.IncomingCall()
    wire: ServerWire = CallStream(stream, call, Message)
    try:
        with single_failure():
            async with trio.open_nursery() as nursery:
                try:
                    await _Serving(wire, handlers, nursery, buffered or BufferedBytes(), limits).run()
                except RpcClosed as error:
                    _log.debug("the stream of a call ended early", reason=error.message)
                nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            await stream.aclose()


class _Serving:
    """Reader of one stream that keeps at most one handler running on it."""

    def __init__(
        self,
        wire: ServerWire,
        handlers: Handlers,
        nursery: trio.Nursery,
        buffered: BufferedBytes,
        limits: MessageLimits | None,
    ) -> None:
        self._wire = wire
        self._handlers = handlers
        self._nursery = nursery
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._ended.set()
        self._inbox: Inbox | None = None
        self._buffered = buffered
        self._limits = limits
        self._counted_incomplete = 0
        "Bytes of an incomplete message counted in `buffered`."

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            self._buffered.change(-self._counted_incomplete)
            self._counted_incomplete = 0

    async def _run(self) -> None:
        while True:
            event = await self._read()
            match event:
                case None:
                    return
                case drpc.Invoked(name):
                    await self._stop()
                    self._start(name)
                case drpc.MessageReceived(data):
                    if self._inbox is not None:
                        try:
                            await self._inbox.put(data)
                        except trio.BrokenResourceError:
                            self._inbox = None  # the handler has finished and accepts no more
                case drpc.SendingEnded():
                    self._close_inbox()
                case drpc.Closed() | drpc.CallFailed():
                    await self._stop()

    async def _read(self) -> drpc.Event | None:
        # Unlike a caller, a server reads on after the end of a call: another may follow on the same stream.
        wire = self._wire
        while not wire._events:
            try:
                data = await wire._stream.receive_some(_READ_SIZE)
                if not data:
                    return None
                wire._events.extend(wire._call.receive_untrusted(bytes(data)))
            except (drpc.DrpcError, trio.BrokenResourceError) as error:
                raise RpcClosed(str(error)) from None
            grown = wire._call.buffered - self._counted_incomplete
            self._buffered.change(grown)
            self._counted_incomplete += grown
        return wire._events.popleft()

    def _start(self, name: str) -> None:
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._inbox = Inbox(self._buffered)
        self._nursery.start_soon(self._run_handler, name, self._inbox, self._scope, self._ended)

    async def _stop(self) -> None:
        self._close_inbox()
        self._scope.cancel()
        await self._ended.wait()

    def _close_inbox(self) -> None:
        if self._inbox is not None:
            self._inbox.end()
            self._inbox = None

    async def _run_handler(self, name: str, messages: Inbox, scope: trio.CancelScope, ended: trio.Event) -> None:
        try:
            with scope:
                await self._answer(name, messages)
        except RpcClosed as error:
            _log.debug("the caller disconnected before its reply", call=name, reason=error.message)
        finally:
            messages.leave()
            ended.set()

    async def _answer(self, name: str, messages: Inbox) -> None:
        call = self._wire._call
        try:
            handler = self._handlers.get(name)
            if handler is None:
                raise RpcError(0, f'protocol error: unknown rpc: "{name}"')
            await handler.answer(self._wire, messages, self._limits)
            call.close_send()
        except RpcClosed:
            raise
        except RpcError as error:
            call.fail(error.number, error.text)
        except Exception as error:
            call.fail(*_failure_of(name, error))
        await self._wire._flush()


def _failure_of(name: str, error: Exception) -> tuple[int, str]:
    """Return the error code and text that the caller receives for a handler's exception."""
    if outage := find_outage(error):  # the store logs it once
        return UNAVAILABLE, f"the server's database {DATABASE_OUTAGES[outage]}"
    if isinstance(error, CoderError):
        return 0, explain_error(error)
    _log.error("a call's handler failed", call=name, error=repr(error))
    return 0, "internal error"


async def _only_request(kind: type[Received], messages: Inbox, limits: MessageLimits | None) -> Received:
    try:
        return await decode_request(kind, await messages.receive(), limits)
    except trio.EndOfChannel:
        raise RpcError(0, "the call carried no request") from None
