"""dRPC on trio: the server's side of calls on a stream. Handlers are in rpc/calls.py."""

from __future__ import annotations

from collections.abc import Awaitable

import trio
from google.protobuf.message import Message

from coder.base import errors as base_errors
from coder.base.errors import DATABASE_OUTAGES, CoderError, explain_error, find_outage
from coder.base.exception_groups import single_failure
from coder.base.log import STRANGERS_LINES, get_logger
from coder.rpc import drpc
from coder.rpc.calls import READ_SIZE, CallStream, Handlers, ServerWire, Unary, close_stream
from coder.rpc.errors import OUTCOME_UNKNOWN, UNAVAILABLE, RpcClosed, RpcError
from coder.rpc.inbox import BufferedBytes, Inbox
from coder.rpc.message_limits import MessageLimits
from coder.rpc.streams import SharedStream

_log = get_logger("rpc", per_minute=STRANGERS_LINES)


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
    serving = _Serving(wire, handlers, buffered or BufferedBytes(), limits)
    try:
        if isinstance(stream, SharedStream):
            if await serving.run_whole_calls(stream):
                stream.end_later()
                return
            stream.send_soon()
        with single_failure():
            async with trio.open_nursery() as nursery:
                await serving.run(nursery)
                nursery.cancel_scope.cancel()
    except RpcClosed as error:
        _log.debug("the stream of a call ended early", reason=error.message)
    finally:
        serving.forget_incomplete()
        await close_stream(stream)


class _Serving:
    """Reader of one stream that keeps at most one handler running on it."""

    def __init__(
        self, wire: ServerWire, handlers: Handlers, buffered: BufferedBytes, limits: MessageLimits | None
    ) -> None:
        self._wire = wire
        self._handlers = handlers
        self._scope = trio.CancelScope()
        self._ended: trio.Event | None = None
        "End of the handler that was started last."
        self._inbox: Inbox | None = None
        self._buffered = buffered
        self._limits = limits
        self._counted_incomplete = 0
        "Bytes of an incomplete message counted in `buffered`."

    async def run_whole_calls(self, stream: SharedStream) -> bool:
        """Answer unary calls that arrived as a whole, in this task: no second one has to read meanwhile.

        Return True at the end of the stream, False when another call has begun; its events are left for `run`.
        """
        events = self._wire._events
        while True:
            if not events:
                event = await self._read()
                if event is None:
                    return True
                events.insert(0, event)
            first = events[0]
            if not isinstance(first, drpc.Invoked):
                events.pop(0)  # of a call that has ended
                continue
            handler = self._handlers.get(first.name)
            if not isinstance(handler, Unary) or len(events) != 3 or not isinstance(events[2], drpc.SendingEnded):
                return False
            request = events[1]
            if not isinstance(request, drpc.MessageReceived):
                return False
            events.clear()
            with trio.CancelScope() as scope:
                stream.watch(scope.cancel)  # whatever follows a whole call ends it
                try:
                    await self._answer(first.name, handler.answer_request(self._wire, request.data, self._limits))
                finally:
                    stream.watch(None)

    async def run(self, nursery: trio.Nursery) -> None:
        """Answer calls of every kind until the stream ends."""
        while True:
            event = await self._read()
            match event:
                case None:
                    return
                case drpc.Invoked(name):
                    await self._stop()
                    self._start(nursery, name)
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

    def forget_incomplete(self) -> None:
        """Uncount what never became a message."""
        self._buffered.change(-self._counted_incomplete)
        self._counted_incomplete = 0

    async def _read(self) -> drpc.Event | None:
        # Unlike a caller, a server reads on after the end of a call: another may follow on the same stream.
        wire = self._wire
        if wire.is_cut:
            raise RpcClosed("the answer of a call that has ended was cut off")
        while not wire._events:
            try:
                data = await wire._stream.receive_some(READ_SIZE)
                if not data:
                    return None
                wire._events.extend(wire._call.receive_untrusted(bytes(data)))
            except (drpc.DrpcError, trio.BrokenResourceError) as error:
                raise RpcClosed(str(error)) from None
            grown = wire._call.buffered - self._counted_incomplete
            self._buffered.change(grown)
            self._counted_incomplete += grown
        return wire._events.pop(0)

    def _start(self, nursery: trio.Nursery, name: str) -> None:
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._inbox = Inbox(self._buffered)
        nursery.start_soon(self._run_handler, name, self._inbox, self._scope, self._ended)

    async def _stop(self) -> None:
        self._close_inbox()
        self._scope.cancel()
        if self._ended is not None:
            await self._ended.wait()

    def _close_inbox(self) -> None:
        if self._inbox is not None:
            self._inbox.end()
            self._inbox = None

    async def _run_handler(self, name: str, messages: Inbox, scope: trio.CancelScope, ended: trio.Event) -> None:
        try:
            with scope:
                await self._answer(name, self._answer_messages(name, messages))
        except RpcClosed as error:
            _log.debug("the caller disconnected before its reply", call=name, reason=error.message)
        finally:
            messages.leave()
            ended.set()

    async def _answer_messages(self, name: str, messages: Inbox) -> None:
        handler = self._handlers.get(name)
        if handler is None:
            raise RpcError(0, f'protocol error: unknown rpc: "{name}"')
        await handler.answer(self._wire, messages, self._limits)

    async def _answer(self, name: str, answering: Awaitable[None]) -> None:
        """Send what a handler answers, and its error."""
        call = self._wire._call
        try:
            await answering
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
        number = OUTCOME_UNKNOWN if error.code == base_errors.OUTCOME_UNKNOWN else 0
        return number, explain_error(error)
    _log.error("a call's handler failed", call=name, error=repr(error))
    return 0, "internal error"
