"""The deployment that is attacked: a victim, a witness that talks to it, an attacker; simulated network and clock.

    place = Place("agent")          # the victim listens and forwards; "edge": it dials, as server and clients do
    place.attack.inner(packet)      # sealed with the attacker's genuine session, by relay
    place.attack.udp(datagram)      # as a stranger, or from the attacker's proven address
    place.attack.relay(packet)      # unsealed, as the relay delivers it

Everything that the victim does for it is counted: packets out, to whom, and time of its thread.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.peers.peer import Peer
from coder.mesh.core.stack.datagrams import UdpDatagram
from coder.mesh.core.stack.interface import ListeningSocket, PendingConnection, TcpSettings, TcpSocket
from coder.mesh.core.wire import stun
from tests.kit.network.simulated_endpoints import REGION, Machine, SimulatedNetwork

T = TypeVar("T")
R = TypeVar("R")
Role = Literal["agent", "edge"]
ECHO_PORT, ATTACKED_PORT, FORWARDED_PORT, CLOSED_PORT = 7, 22, 8080, 9
STRANGER: Address = ("198.51.100.66", 666)
MAX_CONNECTIONS = 512
STUN_TX = b"genuine-tx!!"
MAPPED = bytes(10) + b"\xff\xff\x0a\0\0\1"
"An IPv4 address that the attacker owns beside its overlay address."


class Victim(Machine):
    """A node whose output is counted, and that answers like an agent (`serve`) or dials like the edge."""

    def __init__(self, world: SimulatedNetwork, number: int) -> None:
        super().__init__(world, number, real=True, settings=TcpSettings(max_connections=MAX_CONNECTIONS))
        self.packets_out = 0
        self.bytes_out = 0
        self.to: Counter[Address | bytes] = Counter()
        "Packets by address or key."
        self.learnt: list[object] = []
        "Answers of STUN servers that counted."
        self.asked = {STUN_TX}

    def udp(self, datagrams: Sequence[bytes], to: Address) -> bool:
        self._count(to, datagrams)
        return super().udp(datagrams, to)

    def relay(self, region: int, to: bytes, packets: Sequence[bytes | memoryview]) -> bool:
        self._count(bytes(to), packets)
        return super().relay(region, to, packets)

    def _count(self, to: Address | bytes, packets: Sequence[bytes | memoryview]) -> None:
        self.packets_out += len(packets)
        self.bytes_out += sum(map(len, packets))
        self.to[to] += len(packets)

    def stun(self, datagram: bytes) -> None:
        try:
            response = stun.parse_response_untrusted(datagram)
        except WireError:
            return
        if response.tx_id in self.asked:
            self.learnt.append(response.source)

    def serve(self) -> None:
        """Listen, forward unbound TCP ports (one port is open behind them) and serve datagrams."""
        echo, attacked = self.tcp.tcp_listen(ECHO_PORT), self.tcp.tcp_listen(ATTACKED_PORT)
        echo.on_event = lambda listener: self._accept(listener, _echo)
        attacked.on_event = lambda listener: self._accept(listener, None)
        self.tcp.set_tcp_fallback(self._forward)
        self.tcp.set_udp_fallback(self._datagram)

    def _accept(self, listener: ListeningSocket, on_event: Callable[[TcpSocket], None] | None) -> None:
        while (socket := listener.accept_nowait()) is not None:
            socket.on_event = on_event
            if on_event is not None:
                on_event(socket)

    def _forward(self, pending: PendingConnection) -> None:
        if pending.port != FORWARDED_PORT:
            pending.reset()
        elif (socket := pending.accept()) is not None:
            socket.on_event = _echo

    def _datagram(self, datagram: UdpDatagram) -> None:
        if datagram.port == ECHO_PORT:
            at = (datagram.destination, datagram.port, datagram.source, datagram.source_port)
            self.tcp.udp_send(*at, bytes(datagram.payload))


def _echo(socket: TcpSocket) -> None:
    if socket.error is not None or socket.closed:
        return
    while data := socket.read_nowait():
        if socket.write_closed or not socket.write_nowait(data):
            return
    if socket.eof:
        socket.close()


def bound(value: T, play: Callable[[Attack, T], R]) -> Callable[[Attack], R]:
    """Return the try with a value of a loop."""
    return lambda a: play(a, value)


@dataclass
class Attack:
    """The attacker's means. `cost` is what the victim spent on what was sent."""

    place: Place
    machine: Machine
    sent: int = 0
    bytes_sent: int = 0
    requested: int = 0
    "Packets of data that the victim's application was made to send."
    seconds: float = 0.0
    port: int = 20_000
    key: PrivateKey = field(default_factory=lambda: PrivateKey(bytes([3]) * 32))
    disco: PrivateKey = field(default_factory=lambda: PrivateKey(bytes([103]) * 32))

    @property
    def own(self) -> bytes:
        return self.machine.overlay

    @property
    def target(self) -> bytes:
        return self.place.victim.overlay

    @property
    def peer(self) -> Peer:
        """The victim, as the attacker's own node knows it."""
        return self.machine.endpoint.peers[self.place.victim.key]

    def inner(self, *packets: bytes) -> None:
        """Send inner packets through the attacker's genuine session."""
        self.relay(*self.sealed(*packets))

    def sealed(self, *packets: bytes) -> list[bytes]:
        return self.peer.tunnel.seal(list(packets), self.place.now)

    def relay(self, *packets: bytes, source: bytes | None = None, region: int = REGION) -> None:
        key = self.machine.key if source is None else source
        endpoint, now = self.place.victim.endpoint, self.place.now
        self._spend(packets, lambda: endpoint.receive_relay(region, key, packets, now))

    def udp(self, *datagrams: bytes, source: Address = STRANGER) -> None:
        endpoint, now = self.place.victim.endpoint, self.place.now

        def receive() -> None:
            for datagram in datagrams:
                if datagram:
                    endpoint.receive_udp(bytearray(datagram), len(datagram), len(datagram), source, now)

        self._spend(datagrams, receive)

    def _spend(self, packets: Sequence[bytes], receive: Callable[[], None]) -> None:
        began = time.thread_time()
        receive()
        self.place.victim.endpoint.flush(self.place.now)
        self.seconds += time.thread_time() - began
        self.sent += len(packets)
        self.bytes_sent += sum(map(len, packets))

    def answers(self, seconds: float = 0.05) -> list[bytes]:
        """Inner packets that arrived at the attacker after so much time."""
        self.place.world.run(self.place.now + seconds)
        received, self.machine.stack.received = self.machine.stack.received, []
        return received

    def wait(self, seconds: float) -> None:
        self.place.world.run(self.place.now + seconds)

    def next_port(self) -> int:
        self.port += 1
        return self.port


class Place:
    """Victim, witness and attacker. Both peers have genuine sessions; the witness has an open connection."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.world = world = SimulatedNetwork()
        self.victim = Victim(world, 1)
        world.machines.append(self.victim)
        self.victim.endpoint.set_own_endpoints([self.victim.udp_address], 0.0, 1e9)
        self.witness = Victim(world, 2)
        world.machines.append(self.witness)
        attacker = world.add(3)
        attacker.endpoint.set_own_endpoints([], 0.0, 1e9)
        self.attack = Attack(self, attacker)
        for one, two in ((self.victim, self.witness), (self.victim, attacker)):
            owned = (two.overlay, MAPPED) if two is attacker else (two.overlay,)
            one.endpoint.set_peer(two.config(endpoints=(), allowed_ips=owned), 0.0)
            two.endpoint.set_peer(one.config(endpoints=()), 0.0)
        (self.victim if role == "agent" else self.witness).serve()
        attacker.say(self.victim, b"hello")
        self.line = self._line()
        world.run(1.0)
        assert self.echo(b"works"), "the witness was not reached before the attack"
        attacker.stack.received.clear()

    @property
    def now(self) -> float:
        return self.world.now

    def _line(self) -> TcpSocket:
        dials, served = (self.witness, self.victim) if self.role == "agent" else (self.victim, self.witness)
        line = dials.tcp.tcp_connect(served.overlay, ECHO_PORT, self.now)
        dials.endpoint.flush(self.now)
        return line

    def echo(self, text: bytes) -> int:
        """Have the witness's connection echo; return the packets that it took, 0: no echo within half a second."""
        dials, other = (self.witness, self.victim) if self.role == "agent" else (self.victim, self.witness)
        before = dials.to[other.key] + other.to[dials.key] + dials.to[other.udp_address] + other.to[dials.udp_address]
        self.line.write_nowait(text)
        dials.endpoint.flush(self.now)
        limit, heard = self.now + 0.5, b""
        while len(heard) < len(text) and self.now < limit:
            self.world.run(self.now + 0.01)
            heard += self.line.read_nowait()
        after = dials.to[other.key] + other.to[dials.key] + dials.to[other.udp_address] + other.to[dials.udp_address]
        return after - before if heard == text else 0

    def run(self, until: float) -> None:
        """Let time pass."""
        self.world.run(until)

    @property
    def known(self) -> tuple[object, ...]:
        """Addresses and keys that have proved themselves."""
        return self.witness.udp_address, self.witness.key, self.attack.machine.key, self.attack.machine.udp_address

    def tables(self) -> dict[str, int]:
        """Sizes of everything that grows."""
        endpoint, stack = self.victim.endpoint, self.victim.tcp
        peers = endpoint.peers.values()
        demux = stack._demux
        return {
            "connections": len(stack.connections),
            "timers": stack.deadlines,
            "held": len(demux.held),
            "fragments": len(demux._assembler.waiting),
            "narrowed": len(stack._routes.narrowed),
            "sizes": len(stack._routes._mtu_to),
            "output": sum(map(len, stack._transmit._out.values())),
            "ready": len(stack._transmit._ready),
            "paused": len(stack._transmit._paused),
            "addresses": len(endpoint._by_address.by_address),
            "candidates": sum(len(peer.paths.candidates) for peer in peers),
            "pings": sum(len(peer.paths._outstanding._sent) for peer in peers),
            "staged": sum(len(peer.tunnel._staged) for peer in peers),
            "sessions": len(endpoint.device._indices.sessions),
            "handshakes": len(endpoint.device._indices.handshakes),
            "heap": len(endpoint.device._heap),
            "sources": len(endpoint.device._limiter._buckets),
            "path timers": len(endpoint._path_timers._heap),
            "routes": len(endpoint.routes._regions),
        }

    def evict(self) -> None:
        """Remove the attacker, as the coordinator does when it loses its tunnel."""
        self.victim.endpoint.remove_peer(self.attack.machine.key, self.now)
        self.victim.endpoint.flush(self.now)
