"""Byte streams carried by ordinary requests: the server's ends and their registry (the client is
`coder/net/carried_stream.py`).

A stream belongs to the link handler that accepted it. A stream outlives the requests that feed it: its client counts
as disconnected after `LINGER` seconds without a request. Memory is bounded per stream in both directions, and for all
streams together. Streams opened without a login have a separate bound, so that they cannot displace others. Bytes of
an unfinished request count for its stream, and not for the client's address, which many users may share.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from coder.api.base.refusals import Conflict, NotFound, Unavailable
from coder.appproxy.http.client_address import network_of
from coder.coderd.services.network.sibling_routes import stream_mark
from coder.net.carried_stream import FIRST_WAIT, LEAST_WAIT, MARK, PIECE, WINDOW, RetransmitBuffer

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

LINGER = 30.0
"Seconds without any request after which a client counts as disconnected."
LONGEST_ANSWER = 300.0
"Seconds of an answer; some proxies cut off even active answers, later than this."
LONGEST_WAIT = 60.0
MAX_STREAMS = 4096
"Streams of each kind: opened with a login, and without one (the relay needs none)."
MAX_STREAMS_PER_ADDRESS = 512
"Streams of each kind from one address (one /64 of IPv6): enough for an office behind one proxy."
BUDGET = 256 << 20
"Bytes that all streams of one kind may buffer together."
ROOM_TIMEOUT = 20.0
"Seconds that an upload request waits for the handler to read."
_ENDED = "The stream has ended."


@dataclass(slots=True)
class IncomingBytes:
    """Bytes of an upload request that is still arriving."""

    stream: CarriedServerStream
    size: int = 0

    def take(self, count: int) -> None:
        """Count arrived bytes. Raises NotFound when the stream has ended, or was evicted."""
        self.size += count
        self.stream.count_incoming(count)


class CarriedServerStream(trio.abc.HalfCloseableStream):
    """A carried stream as its link handler uses it."""

    def __init__(self, pool: Pool | None = None, address: str = "") -> None:
        self.address = address
        self.held = 0
        "Bytes buffered, as the pool counts them."
        self._pool = pool
        self._out = RetransmitBuffer()
        self._in = bytearray()
        self._in_offset = 0
        self._in_ended = False
        self._out_ended = False
        self._is_broken = self._is_closed = False
        self._incoming = 0
        self._changed = trio.lowlevel.ParkingLot()
        self._attached = 0
        self._turn = self._feeding = 0
        self._seen_at = trio.current_time()

    # ---- the handler's side

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.lowlevel.checkpoint()
        self._check_sending()
        self._out.write(data)
        self._count()
        self._changed.unpark_all()
        await self.wait_send_all_might_not_block()

    async def wait_send_all_might_not_block(self) -> None:
        while len(self._out) > WINDOW:
            self._check_sending()
            await self._changed.park()

    async def send_eof(self) -> None:
        await trio.lowlevel.checkpoint()
        self._out_ended = True
        self._changed.unpark_all()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await trio.lowlevel.checkpoint()
        while not self._in:
            if self._is_closed:
                raise trio.ClosedResourceError
            if self._is_broken:
                raise trio.BrokenResourceError("the client disconnected")
            if self._in_ended:
                return b""
            await self._changed.park()
        size = len(self._in) if max_bytes is None else max_bytes
        data = bytes(self._in[:size])
        del self._in[:size]
        self._count()
        self._changed.unpark_all()
        return data

    async def aclose(self) -> None:
        self._is_closed = self._out_ended = True
        self._changed.unpark_all()
        await trio.lowlevel.checkpoint()

    def _check_sending(self) -> None:
        if self._is_closed or self._out_ended:
            raise trio.ClosedResourceError
        if self._is_broken:
            raise trio.BrokenResourceError("the client disconnected")

    # ---- the requests' side

    def abort(self) -> None:
        """Break the stream: its client left, or is evicted."""
        self._is_broken = True
        self._incoming = 0
        self._in.clear()
        self._out.acknowledge(self._out.end)
        self._count()
        self._changed.unpark_all()

    def _count(self) -> None:
        before, self.held = self.held, len(self._in) + len(self._out) + self._incoming
        if self._pool is not None and self.held != before:
            self._pool.changed(self.held - before)

    @contextmanager
    def receiving(self) -> Iterator[IncomingBytes]:
        """Count the bytes of an upload request from their arrival until the request is done."""
        incoming = IncomingBytes(self)
        try:
            yield incoming
        finally:
            self.count_incoming(-incoming.size)

    def count_incoming(self, by: int) -> None:
        """Change the count of arriving bytes. Raises NotFound for more bytes on a broken stream."""
        if self._is_broken:
            if by > 0:
                raise NotFound(_ENDED)
            return
        self._incoming += by
        self._count()

    def is_finished(self, now: float) -> bool:
        """Return whether the stream can be removed."""
        silent = not self._attached and now - self._seen_at > LINGER
        return self._is_broken or silent or (self._is_closed and not len(self._out) and not self._attached)

    async def feed(self, offset: int, data: bytes, received: int, *, ended: bool) -> None:
        """Take bytes of the client from `offset` on. Raises Conflict when bytes before `offset` are missing."""
        self._touch()
        self._acknowledge(received)
        if data:
            await self._wait_room()
            known = self._in_offset - offset
            if known < 0:
                raise Conflict("Bytes before these are missing.")
            new_bytes = data[known:]  # known bytes came in a request whose answer was lost
            self._in += new_bytes
            self._in_offset += len(new_bytes)
            self._count()
        if ended:
            self._in_ended = True
        self._changed.unpark_all()

    async def _wait_room(self) -> None:
        self._feeding = turn = self._feeding + 1
        self._changed.unpark_all()  # only the latest request waits: its client abandoned the earlier ones
        with trio.move_on_after(ROOM_TIMEOUT):
            while len(self._in) > WINDOW and not self._is_broken and turn == self._feeding:
                await self._changed.park()
        if self._is_broken or self._is_closed:
            raise NotFound(_ENDED)
        if len(self._in) > WINDOW:
            raise Unavailable("The receiver does not read.")

    def has_ended(self, offset: int) -> bool:
        """Return whether the stream has no bytes after `offset`. Raises Conflict for a wrong offset."""
        self._acknowledge(offset)
        if offset < self._out.start:
            raise Conflict("These bytes were acknowledged before.")
        return self._out_ended and offset >= self._out.end

    async def poll(self, offset: int, wait: float) -> bytes:
        """Return the bytes after `offset`, as soon as there are any; none after `wait` seconds."""
        turn = self._attach()
        try:
            return MARK + await self._next(offset, wait, turn)
        finally:
            self._detach()

    async def pieces(self, offset: int, wait: float) -> AsyncIterator[bytes]:
        """Yield the bytes after `offset` (see `has_ended`) as they come, until `wait` seconds pass without any."""
        turn = self._attach()
        try:
            yield MARK
            until = trio.current_time() + LONGEST_ANSWER
            while trio.current_time() < until:
                data = await self._next(offset, wait, turn)
                if not data:
                    return
                offset += len(data)
                yield data
        finally:
            self._detach()

    async def _next(self, offset: int, wait: float, turn: int) -> bytes:
        with trio.move_on_after(min(max(wait, LEAST_WAIT), LONGEST_WAIT)):
            while turn == self._turn and not self._is_broken:
                if offset < self._out.end:
                    return self._out.read(offset, PIECE) if offset >= self._out.start else b""
                if self._out_ended:
                    return b""
                await self._changed.park()
        return b""

    def _attach(self) -> int:
        """Begin an answer; end the previous one, whose client has reconnected."""
        self._touch()
        self._turn += 1
        self._attached += 1
        self._changed.unpark_all()
        return self._turn

    def _detach(self) -> None:
        self._attached -= 1
        self._touch()

    def _acknowledge(self, offset: int) -> None:
        try:
            self._out.acknowledge(offset)
        except ValueError:
            raise Conflict("These bytes were never sent.") from None
        self._count()
        self._changed.unpark_all()

    def _touch(self) -> None:
        self._seen_at = trio.current_time()


class Pool:
    """Streams of one kind, and their limits."""

    def __init__(self) -> None:
        self._streams: set[CarriedServerStream] = set()
        self._of_address: dict[str, int] = {}
        self._held = 0

    def open(self, remote_ip: str) -> CarriedServerStream:
        """Return a new stream. Raises Unavailable when there are too many."""
        address = network_of(remote_ip)
        if len(self._streams) >= MAX_STREAMS:
            raise Unavailable("Too many carried streams are open.")
        if self._of_address.get(address, 0) >= MAX_STREAMS_PER_ADDRESS:
            raise Unavailable("Too many carried streams are open from this address.")
        stream = CarriedServerStream(self, address)
        self._streams.add(stream)
        self._of_address[address] = self._of_address.get(address, 0) + 1
        return stream

    def forget(self, stream: CarriedServerStream) -> None:
        self._streams.discard(stream)
        self._of_address[stream.address] -= 1
        if not self._of_address[stream.address]:
            del self._of_address[stream.address]

    def changed(self, by: int) -> None:
        """Count buffered bytes. Above the budget, the address with the most bytes loses its largest stream."""
        self._held += by
        while by > 0 and self._held > BUDGET:
            held: dict[str, int] = {}
            for stream in self._streams:
                held[stream.address] = held.get(stream.address, 0) + stream.held
            largest_user = max(held, key=held.__getitem__)
            largest = max(
                (stream for stream in self._streams if stream.address == largest_user), key=lambda stream: stream.held
            )
            if not largest.held:
                return
            largest.abort()


class CarriedStreams:
    """Carried streams of this process."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._streams: dict[str, CarriedServerStream] = {}
        self._known, self._anonymous = Pool(), Pool()

    def open(self, remote_ip: str = "", *, anonymous: bool = False) -> tuple[str, CarriedServerStream]:
        """Return a new stream and its id; `anonymous` streams need no login. Raises Unavailable for too many."""
        pool = self._anonymous if anonymous else self._known
        mark = stream_mark(self._ctx.process)
        ident, stream = mark + secrets.token_hex(16)[len(mark) :], pool.open(remote_ip)
        self._streams[ident] = stream
        self._ctx.nursery.start_soon(self._watch, ident, stream, pool)
        return ident, stream

    def find(self, ident: str) -> CarriedServerStream:
        """Return a stream by id. Raises NotFound."""
        stream = self._streams.get(ident)
        if stream is None:
            raise NotFound("No such stream.")
        return stream

    async def _watch(self, ident: str, stream: CarriedServerStream, pool: Pool) -> None:
        while not stream.is_finished(trio.current_time()):  # noqa: ASYNC110 - silence makes no event
            await trio.sleep(LINGER / 10)
        stream.abort()
        pool.forget(stream)
        del self._streams[ident]


__all__ = ["FIRST_WAIT", "CarriedStreams", "CarriedServerStream"]
