"""The judge of one try against a node, and the list of all of them.

After each try: nothing was raised, the witness's echo works within half a second and twenty packets, the victim sent no
more than three packets for each that it got (and to addresses that proved nothing no more than its allowance), its
tables are bounded, and a packet cost at most ten times a good one. After each group: without the attacker, its tables
are as large as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from coder.mesh.core.paths.candidates import UNPROVEN_BURST, UNPROVEN_RATE, Address
from coder.mesh.core.stack.tcp.states import TcpState
from coder.mesh.core.wire import icmp
from tests.attacks.peers.conn import ACTIVE, PASSIVE, Conn
from tests.attacks.peers.gateway import GatewayAttack, GatewayPlace
from tests.attacks.peers.place import MAX_CONNECTIONS, STRANGER, Attack, Place, Role, bound
from tests.attacks.peers.tables import courses, options, outer, packets, segments

ECHO_PACKETS = 20
AMPLIFICATION, SPARE_PACKETS = 3, 12
"Packets for each that arrived; handshakes, retransmissions and heartbeats of the time that passed."
TIMES, FLOOR = 10.0, 0.002
"Of the time that a good packet takes, and seconds for a try of few packets: handshakes, and what the clock adds."
LIMITS = {
    "connections": 2 * MAX_CONNECTIONS + 400,
    "timers": 5000,
    "held": 1024,
    "fragments": 64,
    "narrowed": 1,
    "sizes": 4,
    "output": 0,
    "ready": 0,
    "addresses": 130,
    "candidates": 200,
    "pings": 512,
    "staged": 256,
    "sessions": 6,
    "handshakes": 2,
    "heap": 200,
    "sources": 1,
    "path timers": 80,
    "routes": 2,
    "flows": 2 * 4096,
    "flow fragments": 64,
    "staged for peers": 64,
}
SPARE_ENTRIES = {"heap": 200, "timers": 200, "path timers": 80, "pings": 200, "sources": 1}
"Entries of heaps and of a limiter that are dropped when they surface."
AnyPlace = Place | GatewayPlace


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    name: str
    play: Callable[[Attack], object]

    @property
    def title(self) -> str:
        return f"{self.group}: {self.name}"


def _in_state(active: bool, a: Attack, of: tuple[TcpState, segments.Play]) -> None:
    state, play = of
    conn = Conn(a).reach(state, active=active)
    play(conn)
    conn.hear()


def _device(a: Attack) -> GatewayAttack:
    assert isinstance(a, GatewayAttack)
    return a


def _segments(role: Role) -> Iterable[Kind]:
    active = role == "edge"
    for state in ACTIVE if active else PASSIVE:
        for name, play in segments.SEGMENTS.items():
            yield Kind(
                "TCP segments in each state",
                f"{state.value}: {name}",
                bound((state, play), partial(_in_state, active)),
            )


def _options(role: Role) -> Iterable[Kind]:
    active = role == "edge"
    for name, value in options.OPTIONS.items():
        if not active:
            yield Kind("TCP options", f"SYN: {name}", bound(value, lambda a, v: options.in_syn(Conn(a), v)))
        yield Kind(
            "TCP options",
            f"segment: {name}",
            bound(value, lambda a, v: options.in_segment(Conn(a).reach(TcpState.ESTABLISHED, active=active), v)),
        )


def _inner(group: str, table: dict[str, packets.Make]) -> Iterable[Kind]:
    for name, make in table.items():
        yield Kind(group, name, bound(make, lambda a, m: (a.inner(*m(a)), a.answers())))


def _outer(group: str, table: dict[str, Callable[[Attack], list[bytes]]], ways: Sequence[str]) -> Iterable[Kind]:
    for name, make in table.items():
        for way in ways:
            yield Kind(
                group, f"{way}: {name}", bound((make, way), lambda a, v: (_deliver(a, v[1], v[0](a)), a.answers()))
            )


def _deliver(a: Attack, way: str, datagrams: list[bytes]) -> None:
    if way == "relayed":
        a.relay(*datagrams)
    elif way == "relayed for a stranger":
        a.relay(*datagrams, source=bytes(32))
    elif way == "device's address":
        a.udp(*datagrams, source=a.machine.udp_address)
    elif way == "stranger":
        a.udp(*datagrams, source=STRANGER)
    elif way == "witness's address":
        a.udp(*datagrams, source=a.place.witness.udp_address)
    else:
        a.udp(outer.ping(a, 7), source=a.machine.udp_address)
        a.udp(*datagrams, source=a.machine.udp_address)


def kinds(role: Role | Literal["gateway"]) -> list[Kind]:
    if role == "gateway":
        return _gateway()
    active = role == "edge"
    made = [*_segments(role), *_options(role)]
    made += [
        Kind("TCP courses", name, bound(play, lambda a, p: p(a, active))) for name, play in courses.COURSES.items()
    ]
    made += _inner("IP", packets.IP)
    made += _inner("IP fragments", packets.FRAGMENTS)
    made += _inner("ICMPv6", packets.ICMP)
    made += _inner("UDP and TSMP", packets.UDP)
    made += _outer("WireGuard", outer.WIREGUARD, ("relayed", "proven address", "witness's address", "stranger"))
    made += _outer("disco", outer.DISCO, ("relayed", "proven address", "stranger"))
    made += _outer("STUN answers", outer.STUN, ("stranger", "relayed"))
    return made


def _gateway() -> list[Kind]:
    """What a plain WireGuard device sends, what an agent sends to devices, and what strangers send."""
    made = [*_inner("IP", packets.IP), *_inner("IP fragments", packets.FRAGMENTS)]
    made += [*_inner("ICMPv6", packets.ICMP), *_inner("UDP and TSMP", packets.UDP)]
    made += _outer("WireGuard", outer.WIREGUARD, ("device's address", "stranger"))
    for group, table in (
        ("IP", packets.IP),
        ("IP fragments", packets.FRAGMENTS),
        ("ICMPv6", packets.ICMP),
        ("UDP and TSMP", packets.UDP),
    ):
        for name, make in table.items():
            made.append(Kind(f"{group}, to devices", name, bound(make, lambda a, m: _device(a).into_devices(*m(a)))))
    for name, play in segments.SEGMENTS.items():
        made.append(Kind("TCP segments to devices", name, bound(play, lambda a, p: _device(a).segment_into_devices(p))))
        made.append(Kind("TCP segments of devices", name, bound(play, lambda a, p: _device(a).segment_of_device(p))))
    return made


def good_packet() -> float:
    """Seconds of a good packet: an echo request of full size and its answer, the best of five rounds."""
    place = Place("agent")
    best = 1.0
    for _ in range(5):
        before, seconds = place.attack.sent, place.attack.seconds
        for _ in range(50):
            place.attack.inner(
                icmp.Message(icmp.ECHO_REQUEST, 0, 1, bytes(1000)).encode(place.attack.own, place.attack.target)
            )
        best = min(best, (place.attack.seconds - seconds) / (place.attack.sent - before))
    return best


class Judge:
    """Plays tries in one place; `findings` are sentences."""

    def __init__(self, role: Role | Literal["gateway"], *, clock: bool) -> None:
        self.role = role
        self.findings: list[str] = []
        self.good = good_packet() if clock else 0.0
        self.costs: list[tuple[float, str]] = []
        self.place = self._new()

    def _new(self) -> AnyPlace:
        return GatewayPlace() if self.role == "gateway" else Place(self.role)

    def play(self, one: Kind) -> None:
        place, victim = self.place, self.place.victim
        attack = place.attack
        sent, size, seconds, requested = attack.sent, attack.bytes_sent, attack.seconds, attack.requested
        out, began = victim.packets_out, place.now
        to = victim.to.copy()
        one.play(attack)
        packets, passed = attack.sent - sent, place.now - began
        sent_to = victim.to - to
        requested, answers = attack.requested - requested, victim.packets_out - out
        if answers > AMPLIFICATION * packets + requested + SPARE_PACKETS + 2 * passed + self._unproven(passed, sent_to):
            self._found(one, f"{answers} packets for {packets}")
        for address, count in sent_to.items():
            if address not in self.place.known and count > AMPLIFICATION * packets + 1:
                self._found(one, f"{count} packets to {address!r} for {packets}")
        # Answers are work, too, and bounded above; ciphers cost by the byte.
        units = max(packets, (attack.bytes_sent - size) // 1000) + answers
        cost = attack.seconds - seconds
        self.costs.append((cost / max(units, 1), one.title))
        if self.good and cost > max(TIMES * self.good * units, FLOOR):
            self._found(one, f"{cost * 1e6:.0f} us for {units} packets of {self.good * 1e6:.0f}")
        used = place.echo(one.title.encode())
        if not 0 < used <= ECHO_PACKETS:
            self._found(one, f"the witness's echo took {used} packets")
            self._again()
            return
        for name, size in place.tables().items():
            if size > LIMITS.get(name, 10):
                self._found(one, f"{size} {name}")

    def _unproven(self, passed: float, sent: Counter[Address | bytes]) -> float:
        """How many of the packets went to addresses that never answered; at most the peer's allowance."""
        there = sum(number for address, number in sent.items() if address not in self.place.known)
        return min(there, UNPROVEN_BURST + UNPROVEN_RATE * passed)

    def group(self, members: Sequence[Kind]) -> None:
        """Play a group in a new place, then remove the attacker: everything is as before."""
        self._again()
        bare = self._new()
        bare.evict()
        bare.run(bare.now + 120)
        expected = bare.tables()
        for one in members:
            self.play(one)
        self.place.evict()
        self.place.run(self.place.now + 120)
        for name, size in self.place.tables().items():
            if size > expected[name] + SPARE_ENTRIES.get(name, 0):
                self.findings.append(f"{members[0].group}: {size} {name} instead of {expected[name]} are left")

    def _again(self) -> None:
        self.place = self._new()

    def _found(self, one: Kind, text: str) -> None:
        self.findings.append(f"{self.role}: {one.title}: {text}")


def grouped(made: Iterable[Kind]) -> dict[str, list[Kind]]:
    groups: dict[str, list[Kind]] = {}
    for one in made:
        groups.setdefault(one.group, []).append(one)
    return groups
