"""A relay connection: reconnecting, keepalives, and dispatch of received frames.

Lives here: reconnecting, keepalives, reading and writing. derp_regions.py reaches the region, derp_client_queue.py has
the queue, derp_client.py decides which regions have a connection.
Obeys docs/protocol/derp.md, "What a client does".
"""

from __future__ import annotations

from random import random
from typing import Protocol

import trio

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.errors import CryptoError, MeshError, WireError
from coder.mesh.core.paths.relays import IDLE_CLOSE
from coder.mesh.core.wire import derp, derp_info, derp_reader
from coder.mesh.drivers.derp_client_queue import DerpSendQueue
from coder.mesh.drivers.derp_regions import RelayRegions
from coder.mesh.drivers.framing import HEADER_SIZE, KEY_END, MANY_FRAMES, FrameBuffer, RelayLink
from coder.mesh.errors import RelayError

READ_TIMEOUT = 120.0
PING_TIMEOUT = 3.0
ANSWER_TIMEOUT = 6.0
"""Ours: seconds a ping on an idle connection may go unanswered; data that waits for a retransmission is not lost
yet."""
LATE_ANSWER = 0.5
"""Ours: seconds after such a deadline. A process that stood still meets the deadline before it has read what waits in
its socket."""
MIN_RETRY_DELAY = 0.1
MAX_RETRY_DELAY = 2.5
"""Ours: upstream waits up to 5 s. Users of a shell should not notice a relay that restarts."""
LATE_RETRY_DELAY = 10.0
RETURN_SHARE = 0.25
"""Ours: the longest delay as a share of the time without a connection, from MAX_RETRY_DELAY up to LATE_RETRY_DELAY. A
relay that is away for long does not restart, or has no room, and all of its clients dial it."""
SLOW_ATTEMPT = 3.0
"""Ours: seconds after which a failed attempt shows an overloaded relay rather than one that is away."""
BACKOFF_RESET_AFTER = 10.0
"""A connection that lived this long resets the backoff."""
MAX_RESTART_WAIT = 30.0

_NETWORK_ERRORS = (
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    trio.TooSlowError,
    WireError,
    CryptoError,
    MeshError,
)
_CUTS = (OSError, trio.BrokenResourceError, RelayError)
"""Errors of a connection that a middlebox ended."""


class RetryDelays:
    """Delays between attempts, in seconds: growing, varied by half, so that clients lost together return apart.

    The rule of `coder/base/retry.py`, of which the mesh, that imports nothing of ours, has its own form.
    """

    def __init__(self) -> None:
        self._delay = MIN_RETRY_DELAY
        self._failing = 0.0
        self._slow_attempts = 0

    def after(self, seconds: float, *, was_connected: bool, requested: float = 0.0) -> float:
        """Return the seconds until the next attempt, after one of so many seconds, its connection included.

        A relay that does not answer in time has too many clients at once: the rests grow with each such attempt, and
        are not shorter than it `requested`, up to MAX_RESTART_WAIT: what answers may be a middlebox.
        """
        if was_connected and seconds > BACKOFF_RESET_AFTER:
            self._delay, self._failing = MIN_RETRY_DELAY, 0.0
        is_slow = not was_connected and not requested and seconds >= SLOW_ATTEMPT
        self._slow_attempts = self._slow_attempts + 1 if is_slow else 0
        delay = max(self._delay, min(self._slow_attempts * SLOW_ATTEMPT, LATE_RETRY_DELAY)) * (0.5 + random() / 2)
        delay = max(delay, min(requested, MAX_RESTART_WAIT))
        self._failing += seconds + delay
        longest = min(max(MAX_RETRY_DELAY, RETURN_SHARE * self._failing), LATE_RETRY_DELAY)
        self._delay = min(2 * self._delay, longest)
        return delay


def requested_delay(error: BaseException) -> float:
    """Return the seconds for which a relay wants no other attempt, by an error or a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        return max(map(requested_delay, error.exceptions))
    return error.retry_after if isinstance(error, RelayError) else 0.0


class RelayEvents(Protocol):
    """Events for the owner of the connections; called synchronously."""

    def relay_packets(self, region: int, source: bytes, packets: list[bytes]) -> None:
        """Receive packets of one peer, in order."""

    def relay_flush(self) -> None:
        """Process the packets delivered since the last flush."""

    def relay_drained(self, region: int) -> None:
        """Resume: a queue that `send` called long is short again."""

    def relay_peer_gone(self, region: int, key: bytes) -> None:
        """Note that the peer is not (any longer) in this region."""

    def relay_connected(self, region: int, connected: bool) -> None:
        """Note that a connection was opened or lost."""


class RelayConnection:
    """Connection to a region, with its send queue."""

    def __init__(self, region: int, regions: RelayRegions, events: RelayEvents) -> None:
        self.region = region
        self.queue = DerpSendQueue()
        self._regions = regions
        self._events = events
        self.wake = trio.Event()
        self.scope = trio.CancelScope()
        self.connected = False
        self.used = trio.current_time()
        self.problem = "connecting"
        self.forced_websocket = ""
        self.transport_kind = ""
        self.unproven = ""
        """The node that was reached and has not sent its welcome: if it hangs up instead, others are tried before
        it."""
        self.restart_in = 0.0
        self.heard = 0
        """Number of reads that brought data."""
        self.answered = trio.Event()
        """Set by the next read; replaced by `_is_answered`."""
        self.heard_at = self.last_sent_at = 0.0
        self.is_restarting = False
        """Whether the relay announced its shutdown."""
        self.unanswered = 0.0
        """Silence before an unanswered ping, seconds."""
        self.attempt: trio.CancelScope | None = None
        self.retry_now = trio.Event()
        """Set to end a pause between attempts."""

    def push(self, packets: int, frames: bytes) -> bool:
        """Queue frames; return False when the queue is long now."""
        self.used = trio.current_time()
        is_short = self.queue.push(packets, frames)
        self.wake.set()
        return is_short

    def put_control(self, frame: bytes) -> None:
        """Queue a frame before packets."""
        self.queue.put_control(frame)
        self.wake.set()

    async def check(self) -> None:
        """Ping the relay; close the connection when no answer arrives."""
        attempt = self.attempt
        # The connection may have been replaced meanwhile: the next one has not been asked.
        if not await self._is_answered(PING_TIMEOUT) and self.attempt is attempt is not None and self.connected:
            self.problem = "the relay did not answer"
            attempt.cancel()

    async def _is_answered(self, within: float) -> bool:
        """Ping the relay; return whether anything arrives in time."""
        if self.answered.is_set():
            self.answered = trio.Event()
        heard, answered = self.heard, self.answered
        self.put_control(derp.DerpPing(self._regions.random(8)).encode())
        for seconds in (within, LATE_ANSWER):
            with trio.move_on_after(seconds):
                await answered.wait()
            if self.heard != heard:
                return True
        return False

    # -- the connection's life --------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Connect again and again; return when the region was unused for long."""
        with self.scope:
            delays = RetryDelays()
            while True:
                began, requested = trio.current_time(), 0.0
                try:
                    with trio.CancelScope() as self.attempt:
                        await self._serve()
                        self.problem = "the relay closed the connection"
                except* _NETWORK_ERRORS as group:
                    self.problem, requested = explain(group), requested_delay(group)
                was_connected = self.connected
                self._lost()
                if self.region != self._regions.home and trio.current_time() - self.used > IDLE_CLOSE:
                    break
                seconds = trio.current_time() - began
                delay = delays.after(seconds, was_connected=was_connected, requested=requested)
                self.retry_now = trio.Event()
                with trio.move_on_after(max(self.restart_in, delay)):
                    await self.retry_now.wait()
                self.restart_in = 0.0
        self._lost()

    def _lost(self) -> None:
        if self.queue.release():
            self._events.relay_drained(self.region)
        if self.connected:
            self.connected = False
            self.queue.forget_control()
            self._events.relay_connected(self.region, False)

    async def _serve(self) -> None:
        reached = await self._regions.reach(self.region, self.unproven)
        transport, inbox, shared = reached.transport, reached.inbox, reached.shared
        async with transport.stream:
            self.unproven = reached.node
            self.forced_websocket, self.transport_kind = transport.forced_websocket, transport.kind
            self.connected = True
            self.is_restarting = False
            self.heard_at = self.last_sent_at = began = trio.current_time()
            self.problem = ""
            self.queue.put_first(derp.NotePreferred(self.region == self._regions.home).encode())
            self.wake.set()
            self._events.relay_connected(self.region, True)
            self.unanswered = 0.0
            inbox.link = link = RelayLink.of(transport.stream)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._write, transport.stream if link is None else link)
                    nursery.start_soon(self._stay_warm)
                    await self._read(inbox, shared)
                    nursery.cancel_scope.cancel()
            except* _CUTS as group:
                self._learn_from_cut(began)
                raise group from None
            self._learn_from_cut(began)

    def _learn_from_cut(self, began: float) -> None:
        """Adjust the keepalive after an unexpected end: its cause may be silence."""
        now = trio.current_time()
        silence = self.unanswered or now - max(self.heard_at, self.last_sent_at)
        if not self.is_restarting:
            self._regions.keepalive(self.region).on_cut(silence, now - began)

    async def _write(self, stream: trio.abc.Stream | RelayLink) -> None:
        while True:
            await self.wake.wait()
            self.wake = trio.Event()
            while data := self.queue.take():
                await stream.send_all(data)
                self.last_sent_at = trio.current_time()
                if self.queue.became_short():
                    self._events.relay_drained(self.region)

    async def _stay_warm(self) -> None:
        """Send keepalives before a middlebox drops the idle connection, and detect when it did."""
        while True:
            interval, quiet_since = self._regions.keepalive(self.region).interval, max(self.heard_at, self.last_sent_at)
            await trio.sleep_until(quiet_since + interval)
            if max(self.heard_at, self.last_sent_at) > quiet_since:
                continue
            if await self._is_answered(ANSWER_TIMEOUT):
                continue  # immediately: the next silence may be cut before the answer's deadline
            self.unanswered = interval
            raise RelayError("the relay did not answer")

    async def _read(self, inbox: FrameBuffer, shared: SharedBox) -> None:
        while True:
            while self._process_frames(inbox.buffer, shared):
                await trio.lowlevel.checkpoint()
            with trio.fail_after(READ_TIMEOUT):
                if not await inbox.more():
                    return
            self.heard += 1
            self.heard_at = trio.current_time()
            self.answered.set()

    def _process_frames(self, buffer: bytearray, shared: SharedBox) -> bool:
        """Process whole frames, packets in runs of one peer. Return whether it stopped at its limit of frames."""
        at, size, left = 0, len(buffer), MANY_FRAMES
        source = b""
        packets: list[bytes] = []
        events, region = self._events, self.region
        unpack, recv = derp.HEADER.unpack_from, derp.RECV_PACKET
        got = False
        while left and size - at >= HEADER_SIZE:
            kind, length = unpack(buffer, at)
            if length > derp.MAX_FRAME:
                raise WireError("frame_too_long")
            end = at + HEADER_SIZE + length
            if end > size:
                break
            if kind == recv and length > 32:
                key = bytes(buffer[at + HEADER_SIZE : at + KEY_END])
                if key != source and packets:
                    left -= 1
                    events.relay_packets(region, source, packets)
                    packets = []
                source = key
                packets.append(bytes(buffer[at + KEY_END : end]))
                got = True
            else:
                left -= 1
                self._on_frame(kind, bytes(buffer[at + HEADER_SIZE : end]), shared)
            at = end
        del buffer[:at]
        if packets:
            events.relay_packets(region, source, packets)
        if got:
            self.used = trio.current_time()
            events.relay_flush()
        return not left

    def _on_frame(self, kind: int, body: bytes, shared: SharedBox) -> None:
        match derp_reader.parse_untrusted(kind, body):
            case derp.DerpPing(data):
                self.put_control(derp.DerpPong(data).encode())
            case derp.PeerGone(key):
                self._events.relay_peer_gone(self.region, key)
            case derp.SealedServerInfo() as sealed:
                derp_info.open_server_info_untrusted(shared, sealed)
                if self.unproven:
                    self._regions.welcomed(self.region, self.unproven)
                    self.unproven = ""
            case derp.Health(problem):
                self.problem = problem[:200]
            case derp.Restarting(reconnect_in_ms):
                self.restart_in = min(reconnect_in_ms / 1000, MAX_RESTART_WAIT)
                self.is_restarting = True
            case _:
                pass  # keepalives have no other effect than their arrival


def explain(group: BaseExceptionGroup[Exception]) -> str:
    """Describe the first cause in a group."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, RelayError) and error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__
