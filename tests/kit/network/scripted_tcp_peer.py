"""A TCP peer scripted by the test: the test writes each segment it sends and inspects each segment it receives."""

from __future__ import annotations

from random import Random

from coder.mesh.core.stack.interface import Stack, TcpSettings, TcpSocket
from coder.mesh.core.wire import ip, tcp
from coder.mesh.core.wire.tcp import ACK, SYN, Options, Segment

OURS = bytes.fromhex("fd7a115ca1e000000000000000000001")
PEER = bytes.fromhex("fd7a115ca1e000000000000000000009")
MODERN = Options(mss=1220, window_scale=7, sack_permitted=True, timestamps=(1000, 0))


class ScriptedTcpPeer:
    """One connection with a Stack. `ack` and `seq` are the peer's own numbers, kept by the test."""

    def __init__(self, settings: TcpSettings | None = None, options: Options = MODERN, port: int = 22) -> None:
        self.now = 1000.0
        self.stack = Stack([OURS], Random(7).randbytes, settings=settings)
        self.options = options
        self.port = port
        self.own_port = 50_000
        self.seq = 5000
        self.ack = 0
        self.stamp = 1000
        self.last: Segment | None = None

    def advance(self, seconds: float) -> list[Segment]:
        """Let time pass timer by timer; everything the stack sends meanwhile."""
        end = self.now + seconds
        sent = self.collect()
        while (wake := self.stack.next_wake()) is not None and wake <= end:
            self.now = max(self.now, wake)
            self.stack.on_timer(self.now)
            sent += self.collect()
        self.now = end
        return sent

    def collect(self) -> list[Segment]:
        """What the stack sends now."""
        sent: list[Segment] = []
        for _ in range(50):
            if not self.stack.pending:
                return sent
            for destination, packets in self.stack.take_output(self.now):
                assert destination == PEER
                sent += [self.read(packet) for packet in packets]
        raise AssertionError("the stack never falls silent")

    def read(self, raw: bytes) -> Segment:
        """Check the checksum, remember the timestamp."""
        packet = ip.parse_untrusted(raw)
        assert packet.source == OURS
        total = ip.ones_sum(packet.source + packet.destination) + len(packet.payload) + ip.PROTOCOL_TCP
        assert (total + ip.ones_sum(packet.payload)) % 0xFFFF == 0, "checksum"
        self.last = tcp.parse_untrusted(packet.payload)
        return self.last

    def send(
        self,
        flags: int = ACK,
        payload: bytes = b"",
        *,
        seq: int | None = None,
        ack: int | None = None,
        window: int | None = None,
        sack: tuple[tuple[int, int], ...] = (),
        options: Options | None = None,
    ) -> list[Segment]:
        """Send a segment; returns the stack's answers. Payload advances `self.seq` when no `seq` is given."""
        self.stamp += 1
        if options is None:
            echo = self.last.options.timestamps[0] if self.last and self.last.options.timestamps else 0
            stamped = (self.stamp, echo) if self.options.timestamps else None
            options = Options(timestamps=stamped, sack=sack)
        number = self.seq if seq is None else seq
        if window is None:
            window = 1000 if self.options.window_scale else 60_000
        segment = Segment(
            self.own_port, self.port, number, self.ack if ack is None else ack, flags, window, options, payload
        )
        if seq is None:
            self.seq += segment.length
        self.stack.input_batch([ip.Packet(ip.PROTOCOL_TCP, PEER, OURS, segment.encode()).encode()], self.now)
        return self.collect()

    def accepted(self) -> TcpSocket:
        """The peer connects to a listener: the stack's socket, established."""
        listener = self.stack.tcp_listen(self.port)
        (answer,) = self.send(SYN, options=self.options)
        assert answer.flags == SYN | ACK
        self.ack = answer.seq + 1
        self.send()
        socket = listener.accept_nowait()
        assert socket is not None
        return socket

    def connected(self) -> TcpSocket:
        """The stack connects to the peer."""
        socket = self.stack.tcp_connect(PEER, self.own_port, self.now, source_port=self.port)
        (syn,) = self.collect()
        assert syn.flags == SYN
        self.ack = syn.seq + 1
        self.send(SYN | ACK, options=self.options)
        assert socket.connected
        return socket
