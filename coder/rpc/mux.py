"""yamux on trio: one transport, many half-closeable streams. The protocol is rpc/yamux.py; this module waits and has
the timers.

`open_mux(stream, client=…)` runs a reader, a writer and a keepalive until the transport ends or the block is left. A
task that waits for months costs two kilobytes for each of ten thousand peers, so there is none without need.
Transport failures never raise out of the block: they end the streams, and `Mux.reason` has the cause.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, runtime_checkable

import trio

from coder.base.exception_groups import single_failure
from coder.base.retry import wait_answer
from coder.rpc import yamux
from coder.rpc.errors import RpcClosed
from coder.rpc.mux_stream import MuxStream
from coder.rpc.small_channel import SmallChannel

KEEPALIVE_INTERVAL = 30.0
KEEPALIVE_TIMEOUT = 10.0
WRITE_TIMEOUT = 10.0
OPEN_TIMEOUT = 75.0
CLOSE_TIMEOUT = 300.0
"Seconds between pings, for an answer, for a write, for an open, for the peer's own close (docs/protocol/rpc.md#yamux)."

MAX_UNREAD = 32 << 20
"Unread bytes (ours) of all streams; the stream that exceeds them is reset."
MAX_HALF_CLOSED = 1024
"Streams (ours) that we have ended and the peer has not; beyond them the oldest is reset."
_FLUSH_TIMEOUT = 2.0
"Seconds (ours) that leaving the block may take to flush the output."
_READ_CHUNK = 8 * 1024
"Bytes (ours) of a read between two checks of the number of frames."
_FRAMES_PER_YIELD = 100
_WRITE_SIZE = 128 * 1024
"Bytes (ours) per write; below a WebSocket message limit of 256 KiB (provisioner daemons)."
_OUTPUT_HIGH = 256 * 1024
"Bytes (ours) queued for the transport above which senders wait."
_QUICK_SIZE = 16 * 1024
"Bytes (ours) queued up to which a task writes them itself, instead of waking the writer."
_MOST_LATER = 16
"Ended streams (ours) that wait for the next write: a server that serves 64 calls at once must hear of their ends."
_QUICK_WRITES = 32
"Such writes (ours) of one task before other tasks run."


@runtime_checkable
class QuickTransport(Protocol):
    """Transport that can send without waiting (`WebSocketStream`)."""

    @property
    def may_send_now(self) -> bool:
        """Whether `send_now` may be called."""

    def send_now(self, data: bytes) -> bool:
        """Send `data`. False: a rest is left for `send_rest`, which also raises what went wrong."""

    async def send_rest(self) -> None:
        """Send the rest, if any. Raises trio.BrokenResourceError."""


class Mux:
    """yamux session; created by `open_mux`."""

    def __init__(self, transport: trio.abc.Stream, *, client: bool) -> None:
        self._transport = transport
        self._quick = transport if isinstance(transport, QuickTransport) else None
        self._quick_writes = self._ended_later = 0
        self._yamux = yamux.Yamux(client=client)
        self._streams: dict[int, MuxStream] = {}
        self._incoming = SmallChannel[MuxStream](yamux.BACKLOG)
        self._output_ready = trio.Event()
        self._drained: trio.Event | None = None
        "Set when the transport has taken output, for tasks that wait for it."
        self._may_open: trio.Event | None = None
        "Set when the peer may accept a further stream, for tasks that wait to open one."
        self._is_writing = False
        "Whether the transport has not taken all of the output that was taken for it."
        self._nursery: trio.Nursery | None = None
        self._is_watching = False
        "Whether a task watches the streams that wait for the peer."
        self._closed = trio.Event()
        self._yielded_at = 0
        self._write_scope = trio.CancelScope(shield=True)
        self._pings: dict[int, trio.Event] = {}
        self._started_pings: dict[int, tuple[float, Callable[[float], None]]] = {}
        self._half_closed: dict[int, float] = {}
        self._at_close: list[Callable[[], None]] = []
        self._unread = 0
        "Unread bytes of all streams, including the overhead of each chunk."
        self.reason = ""
        self.is_silent = False
        "Whether the session ended because the peer did not answer, or took no data."
        self.last_pong = trio.current_time()
        "trio time of the last answer to a ping (of the start before the first)."

    # ---- operations

    async def open_stream(self) -> MuxStream:
        """Open a stream; the peer hears of it with its first data. Raises RpcClosed when the session is over or the
        peer accepts no more streams."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while not self._closed.is_set() and not self._yamux.gone_away and not self._yamux.may_open:
            if self._may_open is None:
                self._may_open = trio.Event()
            await self._may_open.wait()
        if self._closed.is_set() or self._yamux.gone_away:
            raise RpcClosed(self.reason or "the peer accepts no further calls")
        stream = MuxStream(self, self._yamux.open_stream())
        self._streams[stream.id] = stream
        self._begin_watch()
        return stream

    async def accept(self) -> MuxStream:
        """Return the next stream the peer opens. Raises trio.EndOfChannel when the session is over.

        One that has data already is acknowledged with the answer, or by `send_soon`.
        """
        stream = await self._incoming.receive()
        self._yamux.accept(stream.id)
        if not stream._chunks:
            self._wake_writer()
        return stream

    async def ping(self, timeout: float = KEEPALIVE_TIMEOUT) -> float:
        """Return the round-trip time in seconds. Raises RpcClosed without an answer within `timeout`; the session
        continues."""
        if self._closed.is_set():
            raise RpcClosed(self.reason)
        started = trio.current_time()
        number = self._yamux.ping()
        answered = self._pings[number] = trio.Event()
        self._write_now()
        try:
            if not await wait_answer(answered, timeout) or self._closed.is_set():
                raise RpcClosed(self.reason or f"no answer to a ping within {timeout:g} s")
        finally:
            del self._pings[number]
        return trio.current_time() - started

    def start_ping(self, on_answer: Callable[[float], None]) -> None:
        """Ping without waiting: `on_answer` gets the round-trip time in seconds. Does nothing when the session is
        over."""
        if not self._closed.is_set():
            self._started_pings[self._yamux.ping()] = (trio.current_time(), on_answer)
            self._write_now()

    async def wait_closed(self) -> None:
        await self._closed.wait()

    def call_at_close(self, call: Callable[[], None]) -> None:
        """Call a function when the session ends, at once when it has ended: a task that waits costs two kilobytes."""
        if self._closed.is_set():
            call()
        else:
            self._at_close.append(call)

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def close(self, reason: str, *, silent: bool = False) -> None:
        """End every stream; the first reason stays. `silent`: the peer did not answer."""
        if self._closed.is_set():
            return
        self.reason, self.is_silent = reason, silent
        self._closed.set()
        for stream in list(self._streams.values()):
            stream._break(reason)
        self._streams.clear()
        self._incoming.end()
        for pending in self._pings.values():
            pending.set()
        self._wake_writer()
        self._note_drained()
        self._wake_openers()
        at_close, self._at_close = self._at_close, []
        for call in at_close:
            call()

    # ---- for MuxStream

    def _consumed(self, stream: int, size: int) -> None:
        if self._yamux.consumed(stream, size):
            self._wake_writer()

    def _credit(self, stream: int) -> int:
        return self._yamux.credit(stream)

    def _send(self, stream: int, data: memoryview) -> int:
        try:
            sent = self._yamux.send(stream, data)
        except ValueError as error:
            raise trio.ClosedResourceError(str(error)) from None
        return sent

    async def _let_others_run(self) -> None:
        """Before a write of a task: most do not wait."""
        self._quick_writes += 1
        if self._quick_writes % _QUICK_WRITES:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()

    def _write_later(self) -> None:
        """Leave the queued output to the next write, unless much waits for it."""
        self._ended_later += 1
        if self._ended_later >= _MOST_LATER:
            self._write_now()

    def _write_now(self) -> None:
        """Write the queued output if it is small and the transport takes it; otherwise the writer does."""
        quick, self._ended_later = self._quick, 0
        size = self._yamux.output_size
        if quick is None or not 0 < size <= _QUICK_SIZE or self._closed.is_set() or not quick.may_send_now:
            self._wake_writer()
        elif quick.send_now(self._yamux.take_output(size)):
            self._note_drained()
        else:
            self._is_writing = True
            self._output_ready.set()

    def _note_drained(self) -> None:
        if self._drained is not None:
            self._drained.set()
            self._drained = None

    async def _wait_drained(self) -> None:
        while self._yamux.output_size > _OUTPUT_HIGH and not self._closed.is_set():
            await self._wait_output()

    async def _wait_output(self) -> None:
        """Wait until the transport has taken some output, or the session is over."""
        if self._drained is None:
            self._drained = trio.Event()
        await self._drained.wait()

    def _close_sending(self, stream: MuxStream) -> None:
        """Queue the end of a stream; the caller wakes the writer unless it may wait."""
        self._yamux.close_sending(stream.id)
        if self._yamux.is_live(stream.id):
            self._half_closed.setdefault(stream.id, trio.current_time() + CLOSE_TIMEOUT)
            self._begin_watch()
            if len(self._half_closed) > MAX_HALF_CLOSED:
                self._reset(next(iter(self._half_closed)))
        else:
            self._forget_if_ended(stream.id)

    def _abandon(self, stream: MuxStream, dropped: int) -> None:
        if dropped:
            self._yamux.consumed(stream.id, dropped)
        self._close_sending(stream)

    def _wake_writer(self) -> None:
        if self._yamux.output_size or self._closed.is_set():
            self._output_ready.set()

    # ---- tasks

    async def _read(self) -> None:
        try:
            while data := await self._transport.receive_some(65536):
                for start in range(0, len(data), _READ_CHUNK):
                    queued = self._yamux.queued
                    for event in self._yamux.receive_untrusted(bytes(data[start : start + _READ_CHUNK])):
                        self._handle(event)
                    if self._yamux.queued != queued:  # answers to pings, resets
                        self._write_now()
                    await self._yield_to_others()
            self.close("the connection was closed by the peer")
        except yamux.YamuxError as error:
            if error.code is not yamux.GoAwayCode.NORMAL:
                self._yamux.go_away(error.code)
                self._wake_writer()
                with trio.move_on_after(_FLUSH_TIMEOUT):
                    await self._finish()
            self.close(str(error))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.close(f"the connection broke ({error})" if str(error) else "the connection broke")

    async def _yield_to_others(self) -> None:
        """Let other tasks and the writer run after `_FRAMES_PER_YIELD` frames: one read may have five thousand."""
        if self._yamux.frames - self._yielded_at > _FRAMES_PER_YIELD:
            self._yielded_at = self._yamux.frames
            await trio.lowlevel.checkpoint()

    def _handle(self, event: yamux.Event) -> None:
        match event:
            case yamux.StreamOpened(stream):
                self._streams[stream] = MuxStream(self, stream)
                try:
                    self._incoming.send_nowait(self._streams[stream])
                except trio.WouldBlock:
                    # The state machine counts live streams only; streams that were opened and reset still wait here.
                    self._yamux.reset(stream)
                    self._forget_if_ended(stream)
            case yamux.StreamAccepted(stream):
                if live_stream := self._streams.get(stream):
                    live_stream._is_acknowledged = True
                self._wake_openers()
            case yamux.DataReceived(stream, data):
                if live_stream := self._streams.get(stream):
                    live_stream._feed(data)
                    if self._unread > MAX_UNREAD:
                        live_stream._drop()
                        live_stream._break("too much of this session is unread")
                        self._reset(stream)
                else:
                    self._yamux.consumed(stream, len(data))
            case yamux.WindowOpened(stream):
                if live_stream := self._streams.get(stream):
                    live_stream._wake()
            case yamux.YamuxSendingEnded(stream):
                if live_stream := self._streams.get(stream):
                    live_stream._end()
                self._forget_if_ended(stream)
            case yamux.StreamReset(stream):
                if live_stream := self._streams.get(stream):
                    live_stream._break("the peer reset the stream")
                self._forget_if_ended(stream)
            case yamux.YamuxPingAnswered(number):
                self.last_pong = trio.current_time()
                if (pending := self._pings.get(number)) is not None:
                    pending.set()
                elif (started := self._started_pings.pop(number, None)) is not None:
                    started[1](self.last_pong - started[0])
            case yamux.GoAwayReceived():
                self._wake_openers()

    def _reset(self, stream: int) -> None:
        if live_stream := self._streams.get(stream):
            live_stream._break("the stream was reset here")
        self._yamux.reset(stream)
        self._forget_if_ended(stream)
        self._wake_writer()

    def _forget_if_ended(self, stream: int) -> None:
        if not self._yamux.is_live(stream):
            self._streams.pop(stream, None)
            self._half_closed.pop(stream, None)
            self._wake_openers()  # a stream that ended is acknowledged by that

    def _wake_openers(self) -> None:
        if self._may_open is not None:
            self._may_open.set()
            self._may_open = None

    async def _write(self) -> None:
        # Shielded: a cancelled block still flushes its output, see the end of `open_mux`.
        with self._write_scope:
            while not self._closed.is_set():
                await self._output_ready.wait()
                self._output_ready = trio.Event()
                await self._flush()

    async def _flush(self) -> None:
        """Write the queued output. Ends the session when the transport does not accept it in time."""
        self._is_writing = True
        try:
            if self._quick is not None:
                await self._in_time(self._quick.send_rest())
            while not self._closed.is_set() and (chunk := self._yamux.take_output(_WRITE_SIZE)):
                await self._in_time(self._transport.send_all(chunk))
                self._note_drained()
            self._is_writing = False
            self._note_drained()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.close("the connection broke")

    async def _in_time(self, write: Awaitable[None]) -> None:
        with trio.move_on_after(WRITE_TIMEOUT) as scope:
            await write
        if scope.cancelled_caught:
            self.close(f"the connection took no data for {WRITE_TIMEOUT:g} s", silent=True)

    async def _finish(self) -> None:
        """Wait until the transport has taken the output."""
        self._wake_writer()
        while (self._yamux.output_size or self._is_writing) and not self._closed.is_set():
            await self._wait_output()

    async def _keep_alive(self) -> None:
        while not self._closed.is_set():
            await trio.sleep_until(self.last_pong + KEEPALIVE_INTERVAL)
            if trio.current_time() < self.last_pong + KEEPALIVE_INTERVAL:
                continue  # another ping was answered meanwhile
            try:
                await self.ping(KEEPALIVE_TIMEOUT)
            except RpcClosed:
                self.close(f"no sign of life within {KEEPALIVE_TIMEOUT:g} s of asking", silent=True)

    def _begin_watch(self) -> None:
        """Watch streams, now that one begins to wait for the peer."""
        if not self._is_watching and self._nursery is not None and not self._closed.is_set():
            self._is_watching = True
            self._nursery.start_soon(self._watch_streams)

    async def _watch_streams(self) -> None:
        """End the session when a stream is not acknowledged in time; reset streams that are half closed for too
        long. Return when none waits: nothing can be overdue for a while then."""
        opened_at: dict[int, float] = {}
        while not self._closed.is_set():
            if not self._half_closed and not any(map(self._awaits_acknowledgement, self._streams.values())):
                self._is_watching = False
                return
            await trio.sleep(5.0)
            now = trio.current_time()
            pending = {stream.id for stream in self._streams.values() if self._awaits_acknowledgement(stream)}
            opened_at = {stream: opened_at.get(stream, now) for stream in pending}
            if any(now - at >= OPEN_TIMEOUT for at in opened_at.values()):
                self.close(f"a stream was not acknowledged within {OPEN_TIMEOUT:g} s")
            for stream, deadline in list(self._half_closed.items()):
                if now >= deadline:
                    self._reset(stream)

    def _awaits_acknowledgement(self, stream: MuxStream) -> bool:
        return self._yamux.is_ours(stream.id) and not stream._is_acknowledged and not stream._broken


@asynccontextmanager
async def open_mux(transport: trio.abc.Stream, *, client: bool, keepalive: bool = True) -> AsyncIterator[Mux]:
    """Run yamux on `transport`, which is closed at the end. Leaving the block flushes the output. Without `keepalive`
    the caller pings the peer, and closes a silent session."""
    mux = Mux(transport, client=client)
    with single_failure():
        try:
            async with trio.open_nursery() as nursery:
                mux._nursery = nursery
                for task in (mux._read, mux._write, *((mux._keep_alive,) if keepalive else ())):
                    nursery.start_soon(task)
                try:
                    yield mux
                finally:
                    with trio.move_on_after(_FLUSH_TIMEOUT, shield=True):
                        await mux._finish()
                    mux.close("the session was closed here")
                    mux._nursery = None
                    mux._write_scope.cancel()
                    nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(_FLUSH_TIMEOUT, shield=True):
                await transport.aclose()
