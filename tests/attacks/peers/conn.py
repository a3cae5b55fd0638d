"""A TCP connection with the victim in a chosen state; the attacker writes every segment itself."""

from __future__ import annotations

from typing import TypedDict, Unpack

from coder.mesh.core.stack.tcp.connection import TcpSocket
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire import ip, tcp
from coder.mesh.core.wire.tcp import ACK, FIN, RST, SYN, Options, Segment
from tests.attacks.peers.place import ATTACKED_PORT, Attack

MODERN = Options(mss=1220, window_scale=7, sack_permitted=True, timestamps=(1000, 0))
S = TcpState
PASSIVE = (
    S.SYN_RECEIVED,
    S.ESTABLISHED,
    S.CLOSE_WAIT,
    S.LAST_ACK,
    S.FIN_WAIT_1,
    S.FIN_WAIT_2,
    S.CLOSING,
    S.TIME_WAIT,
    S.CLOSED,
)
"States of a connection that the attacker opened; CLOSED: one that was reset."
ACTIVE = (S.SYN_SENT, *PASSIVE)
"States of one that the victim opened; SYN_RECEIVED by simultaneous open."


class Fields(TypedDict, total=False):
    """Fields of a segment that are not as they should be."""

    seq: int
    "Relative to what is right, as `ack`."
    ack: int
    window: int
    options: Options | None
    sack: tuple[tuple[int, int], ...]
    "Blocks, relative to the right `ack`."
    urgent: int


class Conn:
    """One connection: `seq` and `ack` are the attacker's numbers, right for its next segment."""

    def __init__(self, attack: Attack, options: Options = MODERN, port: int = ATTACKED_PORT) -> None:
        self.attack = attack
        self.options = options
        self.port = port
        self.own_port = attack.next_port()
        self.seq = 5000
        self.ack = 0
        self.stamp = 1000
        self.echo = 0
        self.heard: list[Segment] = []

    @property
    def socket(self) -> TcpSocket | None:
        """The victim's end."""
        return self.attack.place.victim.tcp._table.by_key.get(self.key)

    @property
    def key(self) -> bytes:
        """The addresses and ports, as in the attacker's packets."""
        attack = self.attack
        return attack.own + attack.target + self.own_port.to_bytes(2, "big") + self.port.to_bytes(2, "big")

    @property
    def state(self) -> TcpState:
        return S.CLOSED if self.socket is None else self.socket.state

    def reach(self, state: TcpState, *, active: bool) -> Conn:
        """Bring the connection into the state by genuine segments."""
        self._open(active=active, until=state)
        if state in (S.SYN_SENT, S.SYN_RECEIVED, S.ESTABLISHED):
            pass
        elif state is S.CLOSED:
            self.send(RST | ACK)
        elif state in (S.CLOSE_WAIT, S.LAST_ACK):
            self.send(FIN | ACK)
            self.seq += 1
            if state is S.LAST_ACK:
                self._finish()
        else:
            self._finish()
            if state is not S.CLOSING and state is not S.FIN_WAIT_1:
                self.ack += 1
                self.send(ACK)
            if state in (S.CLOSING, S.TIME_WAIT):
                self.send(FIN | ACK)
                self.seq += 1
        assert self.state is state, (state, self.state)
        return self

    def _open(self, *, active: bool, until: TcpState = S.ESTABLISHED) -> None:
        attack = self.attack
        if active:
            now = attack.place.now
            attack.place.victim.tcp.tcp_connect(attack.own, self.own_port, now, source_port=self.port)
            attack.place.victim.endpoint.flush(now)
            self.await_answer()
            self.ack = self.heard[-1].seq + 1
            if until is S.SYN_SENT:
                return
            self.send(SYN if until is S.SYN_RECEIVED else SYN | ACK, options=self.options)
            self.seq += 1
        else:
            self.send(SYN, options=self.options)
            self.seq += 1
            self.await_answer()
            self.ack = self.heard[-1].seq + 1
            if until is not S.SYN_RECEIVED:
                self.send(ACK)

    def _finish(self) -> None:
        """The victim's application finishes its side."""
        assert self.socket is not None
        self.socket.shutdown_write()
        self.attack.place.victim.endpoint.flush(self.attack.place.now)
        self.hear()

    def await_answer(self) -> None:
        """Wait for the answer that must come."""
        self.hear()

    def hear(self, seconds: float = 0.05) -> list[Segment]:
        """What the victim sent on this connection."""
        heard = []
        for packet in self.attack.answers(seconds):
            if packet[6] == ip.PROTOCOL_TCP and packet[42:44] == self.own_port.to_bytes(2, "big"):
                heard.append(tcp.parse_untrusted(ip.parse_untrusted(packet).payload))
        for segment in heard:
            if segment.options.timestamps is not None:
                self.echo = segment.options.timestamps[0]
        self.heard += heard
        return heard

    def segment(self, flags: int = ACK, payload: bytes = b"", **fields: Unpack[Fields]) -> Segment:
        """Return a segment of the connection."""
        self.stamp += 1
        options = fields.get("options")
        if options is None:
            sack = fields.get("sack", ())
            blocks = tuple(((self.ack + a) % 2**32, (self.ack + b) % 2**32) for a, b in sack)
            stamps = (self.stamp, self.echo) if self.options.timestamps else None
            options = Options(timestamps=stamps, sack=blocks)
        seq, ack = self.seq + fields.get("seq", 0), self.ack + fields.get("ack", 0)
        window, urgent = fields.get("window", 1000), fields.get("urgent", 0)
        return Segment(self.own_port, self.port, seq, ack, flags, window, options, payload, urgent)

    def packet(self, segment: Segment | bytes) -> bytes:
        body = segment if isinstance(segment, bytes) else segment.encode()
        return ip.header(ip.PROTOCOL_TCP, self.attack.own, self.attack.target, len(body)) + body

    def send(self, flags: int = ACK, payload: bytes = b"", **fields: Unpack[Fields]) -> None:
        self.attack.inner(self.packet(self.segment(flags, payload, **fields)))
