"""One TCP connection: its variables, and what an application may do with it.

Lives here: the socket verbs, buffers' limits, windows, timers as plain deadlines.
Does not live here: arriving segments (arrival.py), loss (recovery.py), packets (emission.py), SYNs (handshake.py).
Obeys: RFC 9293; names of variables follow its section 3.3.1 (snd_una, rcv_nxt, ...). All sequence numbers are absolute
(never wrapped) inside; 32 bits exist on the wire only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Protocol

from coder.mesh.core.stack.congestion import Cubic
from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.flight import Flight
from coder.mesh.core.stack.reassembly import Reassembly
from coder.mesh.core.stack.rtt import RoundTrip
from coder.mesh.core.stack.sendqueue import SendQueue
from coder.mesh.core.stack.settings import FAST_PATH_RTT, QUICK_ACKS, TcpSettings
from coder.mesh.core.stack.states import RECEIVING, SENDING, SYNCHRONIZED, Fact, State, step

NEVER = float("inf")
MASK = 0xFFFFFFFF
HALF = 1 << 31
_FIRST_MSS = 536
"""RFC 9293 3.7.1 says 1220 for IPv6 when the peer names none; only used until its SYN is read."""


class Phase(Enum):
    """Where loss recovery stands."""

    OPEN = "open"
    RECOVERY = "recovery"
    """A loss was found by acknowledgements; ends when everything outstanding then is acknowledged."""
    LOSS = "loss"
    """A loss was found by silence."""


@dataclass(frozen=True, slots=True)
class TcpStats:
    """A connection in figures; bytes, segments, seconds."""

    sent: int
    received: int
    segments_out: int
    segments_in: int
    retransmitted: int
    timeouts: int
    round_trip: float
    window: int
    mss: int
    skips_checksums: bool


class Host(Protocol):
    """What a connection needs of the stack it belongs to."""

    settings: TcpSettings
    burst_limit: int

    def make_ready(self, socket: TcpSocket) -> None:
        """The connection may have something to send."""

    def note_deadline(self, socket: TcpSocket) -> None:
        """The connection has nothing to send now, but may have to be woken earlier than before."""

    def make_touched(self, socket: TcpSocket) -> None:
        """The application should look at the connection when the current batch is done."""

    def forget(self, socket: TcpSocket) -> None:
        """The connection is CLOSED."""

    def own_limit(self, destination: bytes) -> int:
        """Largest number of bytes behind the fixed TCP header that we want to get: the MSS to announce."""

    def segment_limit(self, socket: TcpSocket) -> int:
        """Largest number of bytes behind the fixed TCP header that we may send: what path and peer both take."""

    def without_checksums(self, destination: bytes) -> bool:
        """Whether the owner switched checksums off."""

    def send_control(self, destination: bytes, packet: bytes) -> None:
        """Queue a packet that belongs to no flow any more."""


class TcpSocket:
    """A connection as its application sees it. Verbs never wait; `on_event` says when to look again."""

    __slots__ = (
        "__weakref__", "accepted_by", "ack_at", "acks_owed", "adopted", "awaits_writable", "challenges",
        "challenges_at", "cubic", "discards", "dsack", "dup_acks", "error", "extra", "fin_at", "fin_sent",
        "first_again", "flight", "full", "head", "host", "irs", "iss", "keepalive", "keepalive_at",
        "keepalive_probes", "keepalive_sent", "key", "last_ack_sent", "last_heard", "last_progress", "last_sent",
        "limited", "local", "local_port", "loss_undo", "max_wnd", "mss", "on_event", "passive", "peer_mss",
        "peer_packet",
        "persist_at", "persist_count", "phase", "probe_at", "probe_end", "probe_fresh", "pseudo", "queue",
        "quick_acks", "quiet_at", "rcv_adv", "rcv_scale", "rcv_wnd", "received", "recovery_point", "remote",
        "remote_port", "reo_mult", "reo_mult_end", "reorder_at", "retransmitted", "retries", "rto_at", "rtt",
        "run_prefix", "run_size", "rx", "sack_ok", "scheduled", "segments_in", "segments_out",
        "segments_unacked", "silence", "skip_checksums", "slot", "snd_nxt", "snd_scale", "snd_una", "snd_wl1",
        "snd_wl2", "snd_wnd", "state", "syn_at", "timeouts", "ts_offset", "ts_ok", "ts_recent", "ts_recent_at",
        "waits_since", "write_closed",
    )  # fmt: skip

    def __init__(
        self, host: Host, local: bytes, local_port: int, remote: bytes, remote_port: int, random: bytes
    ) -> None:
        self.host = host
        self.local = local
        self.local_port = local_port
        self.remote = remote
        self.remote_port = remote_port
        ports = remote_port.to_bytes(2, "big") + local_port.to_bytes(2, "big")
        self.key = remote + local + ports
        "As the addresses and ports stand in packets that arrive."
        self.state = State.CLOSED
        self.error: StackError | None = None
        self.on_event: Callable[[TcpSocket], None] | None = None
        "Called when a flag changed; the stack's own hook gets the event when this is None."
        self.passive = False
        self.adopted = False
        "Whether the application has it (accepted or connected)."
        self.accepted_by: object | None = None
        "The listener it waits in."
        self._begin_sending(host.settings, random)
        self._begin_recovery(host.settings)
        self._begin_receiving(host.settings)
        self._begin_timers()
        # Header prediction and templates; emission.retune fills them in.
        self.run_prefix = b""
        self.run_size = 0
        self.head = b""
        self.full: Struct = Struct("")
        self.pseudo = 0
        self.slot = 0
        "Padded bytes of a full packet."

    def _begin_sending(self, settings: TcpSettings, random: bytes) -> None:
        # The SYN takes the number before the first byte.
        self.iss = int.from_bytes(random[:4], "big")
        self.ts_offset = int.from_bytes(random[4:8], "big")
        self.queue = SendQueue(self.iss + 1)
        self.flight = Flight()
        self.snd_una = self.iss
        self.snd_nxt = self.iss
        self.snd_wnd = 0
        self.snd_wl1 = 0
        self.snd_wl2 = 0
        self.max_wnd = 0
        self.snd_scale = 0
        self.write_closed = False
        self.fin_sent = False
        self.awaits_writable = False
        self.mss = _FIRST_MSS
        self.peer_mss = _FIRST_MSS
        self.peer_packet = 0
        "The largest inner packet the peer takes, when it is of our kind; else 0."
        self.cubic = Cubic(self.mss)
        self.retransmitted = 0
        self.segments_out = 0

    def _begin_recovery(self, settings: TcpSettings) -> None:
        self.rtt = RoundTrip(settings.first_rto, settings.min_rto, settings.max_rto)
        self.phase = Phase.OPEN
        self.recovery_point = self.iss
        self.dup_acks = 0
        self.retries = 0
        "Timeouts in a row."
        self.extra = 0
        "Bytes that may be sent whatever the congestion window says: probes, the first retransmission."
        self.limited = False
        "Whether the congestion window was what stopped us."
        self.loss_undo: tuple[int, int, float, float, float] | None = None
        self.first_again = -1
        "Timestamp of the first retransmission of this recovery (RFC 3522), or -1."
        self.probe_end = -1
        "SND.NXT when a tail loss probe went out, or -1."
        self.probe_fresh = False
        "Whether that probe was new data."
        self.reo_mult = 1
        self.reo_mult_end = 0
        self.timeouts = 0

    def _begin_receiving(self, settings: TcpSettings) -> None:
        self.irs = 0
        self.rx = Reassembly(0)
        self.rcv_wnd = settings.receive_buffer
        self.rcv_adv = 0
        "Right edge of the window the peer was told; never moves left."
        self.rcv_scale = 0
        self.fin_at = -1
        "Sequence number of the peer's FIN, once known."
        self.discards = False
        "The application is gone: arriving data resets the connection."
        self.acks_owed = 0
        "Acknowledgements to send now; more than one only to repeat duplicates."
        self.segments_unacked = 0
        self.quick_acks = QUICK_ACKS
        self.last_ack_sent = 0
        self.dsack: tuple[int, int] | None = None
        self.ts_ok = False
        self.ts_recent = 0
        self.ts_recent_at = 0.0
        self.sack_ok = False
        self.skip_checksums = False
        self.challenges = 0
        self.challenges_at = 0.0
        self.received = 0
        self.segments_in = 0

    def _begin_timers(self) -> None:
        # Deadlines, moments since, counts: seconds of the caller's clock.
        self.syn_at = NEVER
        self.rto_at = NEVER
        self.probe_at = NEVER
        self.reorder_at = NEVER
        self.ack_at = NEVER
        self.persist_at = NEVER
        self.persist_count = 0
        self.quiet_at = NEVER
        self.keepalive: tuple[float, float, int] | None = None
        self.keepalive_at = NEVER
        self.keepalive_probes = 0
        self.keepalive_sent = 0.0
        self.scheduled: list[float] = []
        "Entries of this connection in the stack's heap, the earliest last."
        self.last_heard = 0.0
        self.last_sent = 0.0
        self.last_progress = 0.0
        self.waits_since = 0.0
        "When the last wait for an answer, by timeout or window probe, began."
        self.silence = 0.0
        "Seconds waited in vain, in all such waits since the last progress."

    def __repr__(self) -> str:
        return f"<TcpSocket {self.local_port} -> {self.remote.hex()}:{self.remote_port} {self.state.value}>"

    # Flags

    @property
    def connected(self) -> bool:
        """Whether the handshake is done (also true after either side finished)."""
        return self.state in SYNCHRONIZED

    @property
    def closed(self) -> bool:
        """Whether nothing will ever happen again."""
        return self.state is State.CLOSED

    @property
    def eof(self) -> bool:
        """Whether the peer finished and everything it sent was read."""
        return not self.rx.unread and 0 <= self.fin_at < self.rx.next

    @property
    def readable(self) -> bool:
        """Whether `read_nowait` has something to say: data, the end, or an error."""
        return bool(self.rx.unread) or 0 <= self.fin_at < self.rx.next or self.error is not None

    @property
    def send_limit(self) -> int:
        """Bytes the send buffer takes now: twice the congestion window, so that a fast path is never starved."""
        settings = self.host.settings
        return min(max(settings.send_buffer_start, 2 * self.cubic.window), settings.send_buffer)

    @property
    def writable(self) -> bool:
        """Whether `write_nowait` would take bytes (or raise)."""
        if self.error is not None or self.write_closed or self.state is State.CLOSED:
            return True
        return self.state in SENDING and len(self.queue) < self.send_limit

    @property
    def unsent(self) -> int:
        """Bytes queued that were never sent."""
        return self.queue.end - min(self.snd_nxt, self.queue.end)

    @property
    def unacked(self) -> int:
        """Bytes sent and not acknowledged."""
        return self.snd_nxt - self.snd_una

    @property
    def unread(self) -> int:
        """Bytes that arrived and were not read."""
        return self.rx.unread

    @property
    def stats(self) -> TcpStats:
        """Figures for people and tests."""
        return TcpStats(
            sent=max(self.snd_una - self.iss - 1, 0),
            received=self.received,
            segments_out=self.segments_out,
            segments_in=self.segments_in,
            retransmitted=self.retransmitted,
            timeouts=self.timeouts,
            round_trip=self.rtt.smoothed,
            window=self.cubic.window,
            mss=self.mss,
            skips_checksums=self.skip_checksums,
        )

    # Verbs

    def write_nowait(self, data: bytes) -> int:
        """Queue bytes; returns how many were taken, 0 when the buffer is full (wait for `writable`).

        The bytes object is kept, not copied. StackError when the connection is dead or finished.
        """
        if self.error is not None:
            raise self.error
        if self.write_closed or self.state not in SENDING:
            if not self.write_closed and self.state in (State.SYN_SENT, State.SYN_RECEIVED):
                self.awaits_writable = True
                return 0
            raise StackError("closed")
        queue = self.queue
        room = self.send_limit - (queue.end - queue.start)
        if room <= 0:
            self.awaits_writable = True
            return 0
        room += self.host.settings.max_write
        if len(data) > room:
            data = data[:room]
        queue.append(data if type(data) is bytes else bytes(data))
        self.host.make_ready(self)
        return len(data)

    def read_nowait(self, limit: int = 65_536) -> bytes:
        """Up to `limit` bytes; empty when there is nothing now (then `eof` tells whether there ever will be).

        StackError once everything that arrived before the error was read.
        """
        rx = self.rx
        if not rx.unread:
            if self.error is not None and not 0 <= self.fin_at < rx.next:
                raise self.error
            return b""
        data = rx.read(limit)
        if self.state in RECEIVING:
            # Tell the peer when the window opens by as much as makes a difference (RFC 9293 3.8.6.2.2).
            window = self.receive_window()
            if rx.next + window - self.rcv_adv >= max(min(window, self.rcv_wnd) // 2, 2 * self.mss):
                self.acks_owed = max(self.acks_owed, 1)
                self.host.make_ready(self)
        return data

    def shutdown_write(self) -> None:
        """Finish our side: a FIN follows what is queued. Reading goes on."""
        if self.write_closed or self.state is State.CLOSED:
            return
        if self.state is State.SYN_SENT:
            self.die(None)
            return
        self.write_closed = True
        self.host.make_ready(self)

    def close(self) -> None:
        """The application leaves: finish our side, and reset if the peer goes on sending (RFC 2525 2.17)."""
        if self.state is State.CLOSED:
            return
        if self.rx.unread:
            self.abort()
            return
        self.discards = True
        self.on_event = None
        self.shutdown_write()
        if self.state is State.FIN_WAIT_2:
            self.quiet_at = self.last_heard + self.host.settings.quiet_time
        self.host.make_ready(self)

    def abort(self) -> None:
        """Drop everything and reset the peer."""
        if self.state is State.CLOSED:
            return
        self.send_reset()
        self.die(StackError("aborted"))

    def set_keepalive(self, idle: float | None, interval: float = 75.0, probes: int = 9) -> None:
        """Probe the peer after `idle` seconds of silence, then every `interval`; give up after `probes`. None: off."""
        self.keepalive = None if idle is None else (idle, interval, probes)
        self.keepalive_at = NEVER if idle is None else self.last_heard + idle
        self.host.make_ready(self)

    # Used by the other rooms of the stack

    def take(self, fact: Fact) -> None:
        """Move to the next state."""
        self.state = step(self.state, fact)
        self.host.make_touched(self)
        if self.state is State.CLOSED:
            self._stop()

    def die(self, error: StackError | None) -> None:
        """Become CLOSED at once, with a reason the application will see."""
        if self.state is State.CLOSED:
            return
        self.error = error
        self.take(Fact.DIED)

    def _stop(self) -> None:
        self.queue.clear()
        self.flight.clear()
        self.syn_at = self.rto_at = self.probe_at = self.reorder_at = self.ack_at = NEVER
        self.persist_at = self.quiet_at = self.keepalive_at = NEVER
        self.acks_owed = 0
        self.host.forget(self)

    def send_reset(self) -> None:
        """Queue a RST the peer will believe: at SND.NXT, or a bare SYN's successor."""
        from coder.mesh.core.stack import emission  # the packet builder knows connections; a cycle otherwise

        if self.state in (State.SYN_SENT, State.CLOSED, State.TIME_WAIT):
            return
        self.host.send_control(self.remote, emission.reset_packet(self))

    def receive_window(self) -> int:
        """Bytes the peer may send beyond RCV.NXT: what the buffer takes, and no more than survives as one burst."""
        rx = self.rx
        burst = self.flight_cap()
        limit = self.rcv_wnd if self.rcv_wnd < burst else burst
        window = limit - rx.unread
        told = self.rcv_adv - rx.next
        window = max(window, told)  # the right edge never moves left (RFC 9293 3.8.6.2.1)
        return window if window > 0 else 0

    def flight_cap(self) -> int:
        """The burst limit, in proportion to the round trip where that is long."""
        shortest = self.rtt.minimum
        limit = self.host.burst_limit
        if shortest <= FAST_PATH_RTT or shortest == NEVER:
            return limit
        return int(limit * shortest / FAST_PATH_RTT)

    def deadline(self) -> float:
        """The earliest of all timers."""
        return min(
            self.rto_at,
            self.probe_at,
            self.reorder_at,
            self.ack_at,
            self.persist_at,
            self.quiet_at,
            self.keepalive_at,
            self.syn_at,
        )

    def clock(self, now: float) -> int:
        """Our timestamp value (RFC 7323): milliseconds with a secret offset."""
        return (int(now * 1000) + self.ts_offset) & MASK

    def moment(self, echoed: int, now: float) -> float:
        """When a timestamp that came back was sent, rounded up to the next millisecond."""
        age = (self.clock(now) - echoed) & MASK
        return (int(now * 1000) - age + 1) / 1000
