"""A TCP connection: its parts, its state, and the verbs of its application.

Lives here: the socket verbs, limits of buffers, the interface between the parts.
Does not live here: input (tcp_input.py), output (tcp_output.py), expired deadlines (tcp_timer.py), SYNs (handshake.py).
Those modules read from top to bottom. Each part they call owns its variables, and no other code writes them:

    Receiver   what arrived and what is owed for it      -> reassembly.py
    Sender     what is queued and what the peer takes    -> sendqueue.py
    Recovery   what is in flight, lost, and how fast     -> scoreboard.py, congestion.py, rtt.py, tail_probe.py
    Timers     the deadlines of the connection

Obeys: RFC 9293; names of variables follow its section 3.3.1 (snd_una, rcv_nxt, ...). All sequence numbers are absolute
(never wrapped) inside; 32 bits exist on the wire only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from coder.mesh.core.stack.errors import StackError
from coder.mesh.core.stack.routes import Routes
from coder.mesh.core.stack.settings import TcpSettings
from coder.mesh.core.stack.tcp.agreement import Agreement
from coder.mesh.core.stack.tcp.receiver import Receiver
from coder.mesh.core.stack.tcp.recovery import Recovery
from coder.mesh.core.stack.tcp.rtt import RoundTrip
from coder.mesh.core.stack.tcp.segments import SegmentBuilder
from coder.mesh.core.stack.tcp.sender import Sender
from coder.mesh.core.stack.tcp.states import RECEIVING, SENDING, SYNCHRONIZED, TcpEvent, TcpState, step
from coder.mesh.core.stack.tcp.timers import Timers


@dataclass(frozen=True, slots=True)
class TcpStats:
    """Statistics of a connection; bytes, segments, seconds."""

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


class Host:
    """The stack as a connection sees it. A class, not a Protocol: compiled, its calls are direct."""

    __slots__ = ("routes", "settings")

    def __init__(self, routes: Routes, settings: TcpSettings) -> None:
        self.routes = routes
        self.settings = settings

    def mark_ready(self, socket: TcpSocket) -> None:
        """Note that the connection may have something to send."""
        raise NotImplementedError

    def note_deadline(self, socket: TcpSocket) -> None:
        """Note that the connection has nothing to send now, but may have an earlier deadline than before."""
        raise NotImplementedError

    def mark_touched(self, socket: TcpSocket) -> None:
        """Note that the application should check the connection when the current batch is done."""
        raise NotImplementedError

    def waits(self, socket: TcpSocket) -> None:
        """Note that the connection is in TIME_WAIT."""
        raise NotImplementedError

    def forget(self, socket: TcpSocket) -> None:
        """Remove the CLOSED connection."""
        raise NotImplementedError

    def send_control(self, destination: bytes, packet: bytes) -> None:
        """Queue a packet without a flow."""
        raise NotImplementedError


class TcpSocket:
    """A connection as its application sees it. Verbs never wait; `on_event` says when to check it again."""

    __slots__ = (
        "__weakref__",
        "accepted_by",
        "adopted",
        "agreed",
        "builder",
        "error",
        "host",
        "key",
        "local",
        "local_port",
        "on_event",
        "passive",
        "receiver",
        "recovery",
        "remote",
        "remote_port",
        "sender",
        "state",
        "timers",
    )

    def __init__(
        self, host: Host, local: bytes, local_port: int, remote: bytes, remote_port: int, random: bytes
    ) -> None:
        self.host = host
        self.local = local
        self.local_port = local_port
        self.remote = remote
        self.remote_port = remote_port
        here, there = local_port.to_bytes(2, "big"), remote_port.to_bytes(2, "big")
        # A slice of the packet is the key: no address is parsed to find the connection.
        self.key = remote + local + there + here
        "Addresses and ports, laid out as in arriving packets."
        self.state = TcpState.CLOSED
        self.error: StackError | None = None
        self.on_event: Callable[[TcpSocket], None] | None = None
        "Called when a flag changed; the stack's own hook gets the event when this is None."
        self.passive = False
        self.adopted = False
        "Whether the application has accepted or opened the connection."
        self.accepted_by: object | None = None
        "The listener in whose queue it waits."
        settings, burst = host.settings, host.routes.burst
        # Shared by both halves: the round trip also bounds what the peer may send (burst.py).
        rtt = RoundTrip(settings)
        self.agreed = Agreement()
        self.timers = Timers()
        self.receiver = Receiver(self.agreed, self.timers, rtt, burst, settings)
        # RFC 9293 3.4.1 and RFC 7323 section 7: initial sequence numbers and timestamp offsets are secret.
        number, offset = int.from_bytes(random[:4], "big"), int.from_bytes(random[4:8], "big")
        self.sender = Sender(number, self.agreed, self.timers)
        self.builder = SegmentBuilder(local, remote, here + there, offset, self.agreed, self.receiver)
        self.recovery = Recovery(self.sender, self.timers, self.builder, rtt, self.agreed, burst)

    def __repr__(self) -> str:
        return f"<TcpSocket {self.local_port} -> {self.remote.hex()}:{self.remote_port} {self.state.value}>"

    # Flags

    @property
    def connected(self) -> bool:
        """Whether the handshake is done (also true after either side finished)."""
        return self.state in SYNCHRONIZED

    @property
    def closed(self) -> bool:
        """Whether the connection is closed; no further event follows."""
        return self.state is TcpState.CLOSED

    @property
    def eof(self) -> bool:
        """Whether the peer finished and everything it sent was read."""
        receiver = self.receiver
        # A FIN behind a hole is known and not yet reached.
        return not receiver.rx.unread and 0 <= receiver.fin_seq < receiver.rx.next

    @property
    def readable(self) -> bool:
        """Whether `read_nowait` has a result: data, EOF, or an error."""
        receiver = self.receiver
        return bool(receiver.rx.unread) or 0 <= receiver.fin_seq < receiver.rx.next or self.error is not None

    @property
    def send_limit(self) -> int:
        """Bytes the send buffer takes now: twice the congestion window, so that a fast path is never starved."""
        settings = self.host.settings
        # One window in flight and one waiting behind it. More would only cost memory: the writer's kernel buffers hold
        # the rest back.
        return min(max(settings.send_buffer_start, 2 * self.recovery.cubic.window), settings.send_buffer)

    @property
    def writable(self) -> bool:
        """Whether `write_nowait` would take bytes (or raise)."""
        if self.error is not None or self.sender.write_closed or self.state is TcpState.CLOSED:
            return True
        # A dead connection counts as writable, as with kernels: a waiting writer has to wake up to learn of it. After
        # FIN-WAIT-1 nothing may be written any more; `write_closed` above covers that.
        return self.state in SENDING and len(self.sender.queue) < self.send_limit

    @property
    def write_closed(self) -> bool:
        """Whether the application finished our side."""
        return self.sender.write_closed

    @property
    def unsent(self) -> int:
        """Bytes queued that were never sent."""
        return self.sender.unsent

    @property
    def unacked(self) -> int:
        """Bytes sent and not acknowledged."""
        return self.sender.in_flight

    @property
    def unread(self) -> int:
        """Bytes that arrived and were not read."""
        return self.receiver.rx.unread

    @property
    def received(self) -> int:
        """Total bytes that arrived in order."""
        return self.receiver.received

    @property
    def acks_pending(self) -> int:
        """Acknowledgements that the next output of this connection will send."""
        return self.receiver.acks_pending

    @property
    def mss(self) -> int:
        """Payload bytes of a full segment."""
        return self.builder.mss

    @property
    def stats(self) -> TcpStats:
        """Return statistics for people and tests."""
        sender, receiver, recovery = self.sender, self.receiver, self.recovery
        return TcpStats(
            sent=max(sender.snd_una - sender.iss - 1, 0),
            received=receiver.received,
            segments_out=sender.segments_out,
            segments_in=receiver.segments_in,
            retransmitted=recovery.retransmitted,
            timeouts=recovery.timeouts,
            round_trip=recovery.rtt.srtt,
            window=recovery.cubic.window,
            mss=self.builder.mss,
            skips_checksums=self.builder.skip_checksums,
        )

    # Verbs

    def await_writable(self) -> None:
        """Have `on_event` called when the send buffer has room again."""
        self.sender.await_writable(True)

    def write_nowait(self, data: bytes) -> int:
        """Queue bytes; return how many were accepted, 0 when the buffer is full (wait for `writable`).

        The bytes object is kept, not copied. Raises StackError when the connection is dead or finished.
        """
        if self.error is not None:
            raise self.error
        sender = self.sender
        if sender.write_closed or self.state not in SENDING:
            if not sender.write_closed and self.state in (TcpState.SYN_SENT, TcpState.SYN_RECEIVED):
                sender.await_writable(True)
                return 0
            raise StackError("closed")
        queue = sender.queue
        room = self.send_limit - (queue.end - queue.start)
        if room <= 0:
            sender.await_writable(True)
            return 0
        # One write may exceed the limit: cutting it would copy it, and the limit is not exact.
        room += self.host.settings.max_write
        if len(data) > room:
            data = data[:room]
        # A caller may change a bytearray before it is acknowledged: only that type is copied.
        queue.append(data if type(data) is bytes else bytes(data))
        self.host.mark_ready(self)
        return len(data)

    def read_nowait(self, limit: int = 65_536) -> bytes:
        """Return up to `limit` bytes; empty when there is nothing now (`eof` says whether more can follow).

        Raises StackError once everything that arrived before the error was read.
        """
        receiver = self.receiver
        rx = receiver.rx
        if not rx.unread:
            if self.error is not None and not 0 <= receiver.fin_seq < rx.next:
                raise self.error
            return b""
        data = rx.read(limit)
        receiver.count_read(len(data))
        if self.state in RECEIVING and receiver.is_update_due(self.builder.mss):
            # A peer whose data filled the window sends nothing that could carry an update: send it one.
            receiver.request_ack()
            self.host.mark_ready(self)
        return data

    def shutdown_write(self) -> None:
        """Finish our side: a FIN follows the queued data. Reading continues."""
        if self.sender.write_closed or self.state is TcpState.CLOSED:
            return
        if self.state is TcpState.SYN_SENT:
            # RFC 9293 section 3.10.4: in SYN-SENT there is nothing to finish.
            self.fail(None)
            return
        self.sender.finish()
        self.host.mark_ready(self)

    def close(self) -> None:
        """Close for the application: finish our side, and reset if the peer continues to send (RFC 2525 2.17).

        Queued data is still delivered, unless the peer accepts nothing for `orphan_give_up` seconds.
        """
        if self.state is TcpState.CLOSED:
            return
        # RFC 9293 section 3.6.1: closing with unread data resets, so that the peer learns that its data was not
        # accepted.
        if self.receiver.rx.unread:
            self.abort()
            return
        # The application gets no further event; the connection finishes on its own.
        self.receiver.discard()
        self.recovery.rtt.orphan()
        self.on_event = None
        self.shutdown_write()
        if self.state is TcpState.FIN_WAIT_2:
            # RFC 9293 has no limit for FIN-WAIT-2. A peer that never finishes must not keep the connection for ever.
            self.timers.set_time_wait(self.receiver.last_heard + self.host.settings.time_wait)
        self.host.mark_ready(self)

    def abort(self) -> None:
        """Drop everything and reset the peer."""
        if self.state is TcpState.CLOSED:
            return
        # RFC 9293 section 3.10.5: the peer gets a reset, and queued data is discarded.
        self.send_reset()
        self.fail(StackError("aborted"))

    def set_keepalive(self, idle: float | None, interval: float = 75.0, probes: int = 9) -> None:
        """Probe the peer after `idle` seconds of silence, then every `interval`; give up after `probes`. None: off."""
        self.timers.set_keepalive(None if idle is None else (idle, interval, probes), self.receiver.last_heard)
        self.host.mark_ready(self)

    # Called by the listener, the handshake and segment input

    def adopt(self) -> None:
        """Hand the connection to the application."""
        self.accepted_by = None
        self.adopted = True

    def wait_in(self, listener: object | None) -> None:
        """Put the connection in that listener's queue, or (None) take it out."""
        self.accepted_by = listener

    def open_passively(self) -> None:
        """Mark the connection as a passive open."""
        self.passive = True

    def transition(self, event: TcpEvent) -> None:
        """Move to the next state."""
        self.state = step(self.state, event)
        self.host.mark_touched(self)
        if self.state is TcpState.CLOSED:
            self.sender.stop()
            self.recovery.stop()
            self.receiver.stop()
            self.timers.stop()
            self.host.forget(self)

    def fail(self, error: StackError | None) -> None:
        """Become CLOSED immediately, with an error for the application."""
        if self.state is TcpState.CLOSED:
            return
        self.error = error
        self.transition(TcpEvent.DIED)

    def send_reset(self) -> None:
        """Queue a RST that the peer accepts: at SND.NXT (RFC 5961 3.2 requires exactly that number)."""
        # RFC 9293 section 3.10.5: in SYN-SENT there is nothing to reset, and in TIME-WAIT the peer has finished as
        # well.
        if self.state in (TcpState.SYN_SENT, TcpState.CLOSED, TcpState.TIME_WAIT):
            return
        self.host.send_control(self.remote, self.builder.reset(self.sender.control_seq()))

    def begin_time_wait(self, now: float) -> None:
        """Enter TIME-WAIT: stay to acknowledge a retransmitted FIN of the peer (RFC 9293 3.6.1)."""
        self.timers.stop_all_but_time_wait()
        self.timers.set_time_wait(now + self.host.settings.time_wait)
        self.host.waits(self)

    def update_mss(self) -> None:
        """Set the segment size after a change of path or peer."""
        agreed = self.agreed
        # The smaller of the peer's announced MSS and the current path limit (RFC 9293 section 3.7.1).
        limit = self.host.routes.segment_limit(self.remote, agreed.peer_mss, agreed.peer_packet)
        self.builder.update_mss(limit)
        self.recovery.resize(self.builder.mss)

    def choose_checksums(self) -> None:
        """Decide whether segments carry checksums; the peer's SYN is known."""
        # Left out only where both ends run this stack (docs/decisions/tcp.md): the tunnel has authenticated every byte.
        self.builder.set_skip_checksums(self.host.settings.skip_checksums and self.agreed.peer_packet > 0)
        self.update_mss()
