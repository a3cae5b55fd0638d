"""Courses of TCP connections: what a peer may do over time, with one or with many."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire.tcp import ACK, FIN, RST, SYN, URG, Options, Segment
from tests.attacks.peers.conn import MODERN, Conn
from tests.attacks.peers.place import ATTACKED_PORT, CLOSED_PORT, ECHO_PORT, FORWARDED_PORT, Attack
from tests.attacks.peers.tables.packets import fragment

Course = Callable[[Attack, bool], object]
E = TcpState.ESTABLISHED
DATA = bytes(400_000)


def opened(a: Attack, active: bool, options: Options = MODERN) -> Conn:
    return Conn(a, options).reach(E, active=active)


def sending(a: Attack, active: bool, options: Options = MODERN, window: int = 1000) -> Conn:
    """The victim has much to send, and sent what the window takes."""
    c = opened(a, active, options)
    c.send(window=window)
    assert c.socket is not None
    c.socket.write_nowait(DATA)
    a.requested += len(DATA) // c.socket.mss + 1
    a.place.victim.endpoint.flush(a.place.now)
    c.hear()
    return c


def many(a: Attack, count: int, port: int, flags: int = SYN, payload: bytes = b"") -> None:
    for _ in range(count // 50):
        conns = [Conn(a, port=port) for _ in range(50)]
        a.inner(*[c.packet(c.segment(flags, payload, options=MODERN)) for c in conns])


def completed(a: Attack, count: int, then: int = 0) -> None:
    """Open so many connections to the listener; then send a segment with these flags on each."""
    conns = []
    for _ in range(count):
        c = Conn(a)
        c.send(SYN, options=MODERN)
        conns.append(c)
    answers = {packet[42:44]: packet[44:48] for packet in a.answers() if packet[53] & SYN}
    for c in conns:
        number = answers.get(c.own_port.to_bytes(2, "big"))
        if number is not None:
            c.seq, c.ack = c.seq + 1, int.from_bytes(number, "big") + 1
            c.send()
            if then:
                c.send(then)


def acks(a: Attack, active: bool, steps: Iterable[int], **segment: object) -> None:
    c = sending(a, active)
    for step in steps:
        c.ack += step
        c.send(**segment)  # type: ignore[arg-type]


def zero_window(a: Attack, active: bool, seconds: float = 300.0) -> None:
    c = sending(a, active)
    c.ack += 100
    c.send(window=0)
    for _ in range(int(seconds // 30)):
        a.wait(30)
        c.send(window=0)


def shrinking(a: Attack, active: bool) -> None:
    c = sending(a, active)
    for window in range(1000, 0, -50):
        c.send(window=window)


def oscillating(a: Attack, active: bool) -> None:
    c = sending(a, active)
    for number in range(400):
        c.send(window=0 if number & 1 else 1)


def stream(a: Attack, active: bool, pieces: Iterable[tuple[int, bytes]], options: Options | None = None) -> None:
    c = opened(a, active)
    for at, data in pieces:
        c.send(ACK, data, seq=at, options=options)


def ghost(a: Attack, active: bool) -> None:
    """Data, then silence: the victim retransmits until it gives up."""
    sending(a, active)
    a.wait(1000)


def orphans(a: Attack, active: bool) -> None:
    """The application leaves; the peer keeps its window closed."""
    for _ in range(20):
        c = sending(a, active)
        c.send(window=0)
        if c.socket is not None:
            c.socket.close()
    a.wait(150)


def reused(a: Attack, active: bool, number: int) -> None:
    """A new SYN for addresses and ports in TIME_WAIT."""
    c = Conn(a).reach(TcpState.TIME_WAIT, active=active)
    for _ in range(50):
        c.stamp += 1
        c.send(SYN, seq=number, options=Options(mss=1220, timestamps=(c.stamp, 0)))


def renewed(a: Attack, active: bool) -> None:
    for _ in range(50):
        c = opened(a, active)
        c.send(RST)


def resets(a: Attack, active: bool) -> None:
    c = opened(a, active)
    for number in range(1, 500):
        c.send(RST, seq=number)


def silly(a: Attack, active: bool) -> None:
    c = sending(a, active, Options(mss=1, sack_permitted=True), window=60_000)
    for _ in range(50):
        c.ack += 100
        c.send(window=60_000)


def at_once(a: Attack, active: bool) -> None:
    """Everything is acknowledged at once, again and again: the window grows, and is emptied in one turn."""
    c = opened(a, active)
    for _ in range(9):
        if c.socket is None:
            return
        c.socket.write_nowait(DATA)
        a.requested += len(DATA) // c.socket.mss + 1
        a.place.victim.endpoint.flush(a.place.now)
        c.hear()
        if c.socket is not None:
            c.ack = c.socket.sender.snd_nxt & 0xFFFFFFFF
        c.send(window=60_000)


def closed_port(a: Attack, active: bool) -> None:
    for flags in (SYN, ACK, FIN, RST, SYN | ACK, FIN | ACK, 0, 0xFF, URG):
        c = Conn(a, port=CLOSED_PORT)
        c.send(flags, b"data")


def to_itself(a: Attack, active: bool) -> None:
    """The victim's own ports on both ends."""
    body = Segment(ATTACKED_PORT, ATTACKED_PORT, 1, 0, SYN, 1000, MODERN).encode()
    a.inner(Conn(a).packet(body), Conn(a).packet(body[:2] + b"\0\0" + body[4:]), Conn(a).packet(b"\0\0" + body[2:]))


def fragmented(a: Attack, active: bool) -> None:
    """SYNs in fragments, with the addresses and ports of an open connection."""
    c = opened(a, active)
    for number in range(50):
        body = c.segment(SYN, seq=number * 1000, options=MODERN).encode()
        for cut in (len(body), 16):
            pieces = [body[at : at + cut] for at in range(0, len(body), cut)]
            made = enumerate(pieces)
            a.inner(
                *[
                    fragment(a, at * cut, piece, more=at < len(pieces) - 1, protocol=6, number=number)
                    for at, piece in made
                ]
            )
    entries = {id(entry[2]) for entry in a.place.victim.tcp._transmit.deadlines._heap if entry[2].key == c.key}
    assert len(entries) <= 1, f"{len(entries)} connections have the same addresses and ports"


COURSES: dict[str, Course] = {
    "window closed for five minutes, probes answered": zero_window,
    "window closed, probes unanswered": lambda a, active: [sending(a, active).send(window=0), a.wait(1000)],
    "window shrinks to nothing": shrinking,
    "window opens and closes by a byte": oscillating,
    "silence with data outstanding": ghost,
    "twenty connections left with a closed window": orphans,
    "MSS of one byte, all of it acknowledged": silly,
    "MSS of 0": lambda a, active: sending(a, active, Options(mss=0)),
    "no options at all": lambda a, active: sending(a, active, Options()),
    "scale of 14, full window": lambda a, active: sending(a, active, Options(mss=1220, window_scale=14), 65_535),
    "acknowledged in pieces of one byte": lambda a, active: acks(a, active, [1] * 1000),
    "acknowledged ahead of arrival": lambda a, active: acks(a, active, [5000] * 40),
    "acknowledged backwards": lambda a, active: acks(a, active, [3000, *[-1] * 500]),
    "thousand duplicate acknowledgements": lambda a, active: acks(a, active, [0] * 1000),
    "thousand duplicates with SACK": lambda a, active: acks(a, active, [0] * 1000, sack=((1220, 2440),)),
    "SACK of every second segment": lambda a, active: acks(
        a, active, [0] * 100, sack=((1208, 2416), (3624, 4832), (6040, 7248))
    ),
    "SACK, then withdrawn": lambda a, active: acks(a, active, [0] * 4, sack=((1208, 9000),)),
    "everything acknowledged at once": at_once,
    "bytes out of order, one at a time": lambda a, active: stream(a, active, ((1 + 2 * n, b"x") for n in range(2000))),
    "bytes in reverse": lambda a, active: stream(a, active, ((2000 - n, b"x") for n in range(2000))),
    "overlaps of a byte": lambda a, active: stream(a, active, ((9 * n + 1, bytes(10)) for n in range(500))),
    "the same byte two thousand times": lambda a, active: stream(a, active, [(0, b"x")] * 2000),
    "everything but the first byte": lambda a, active: stream(
        a, active, ((1 + 1000 * n, bytes(1000)) for n in range(60))
    ),
    "different data at the same place": lambda a, active: stream(a, active, ((5, bytes([n])) for n in range(250))),
    "timestamps backwards": lambda a, active: stream(a, active, [(0, b"x")] * 500, Options(timestamps=(1, 0))),
    "unread for ever": lambda a, active: stream(a, active, ((1200 * n, bytes(1200)) for n in range(500))),
    "urgent storm": lambda a, active: (
        [c := opened(a, active), [c.send(URG | ACK, urgent=n) for n in range(500)]][1] and None
    ),
    "reset storm in the window": resets,
    "SYN storm in a connection": lambda a, active: (
        [
            c := opened(a, active),
            [c.send(SYN, seq=n, options=MODERN) for n in range(500)],
        ][1]
        and None
    ),
    "keepalive storm": lambda a, active: stream(a, active, [(-1, b"\0")] * 1000),
    "opened and reset, fifty times": renewed,
    "FIN in the middle of later data": lambda a, active: [
        c := opened(a, active),
        c.send(FIN | ACK, seq=10),
        c.send(ACK, bytes(500)),
        a.wait(100),
    ],
    "FIN, then never closes": lambda a, active: [c := opened(a, active), c.send(FIN | ACK), a.wait(200)],
    "every kind of segment to a closed port": closed_port,
    "the victim's ports on both ends, port 0": to_itself,
    "TIME_WAIT, older SYNs": lambda a, active: reused(a, active, -5000),
    "TIME_WAIT, newer SYNs": lambda a, active: reused(a, active, 5000),
    "SYNs in fragments on an open connection": fragmented,
    "2,000 half-open connections": lambda a, active: many(a, 2000, ATTACKED_PORT),
    "2,000 half-open with data": lambda a, active: many(a, 2000, ATTACKED_PORT, payload=bytes(1000)),
    "2,000 SYNs to a closed port": lambda a, active: many(a, 2000, CLOSED_PORT),
    "2,000 SYNs to a forwarded port": lambda a, active: many(a, 2000, FORWARDED_PORT),
    "2,000 acknowledgements of nothing": lambda a, active: many(a, 2000, ECHO_PORT, ACK),
    "500 connections": lambda a, active: completed(a, 500),
    "500 connections, half-closed": lambda a, active: completed(a, 500, FIN | ACK),
    "500 connections, reset": lambda a, active: completed(a, 500, RST),
}
