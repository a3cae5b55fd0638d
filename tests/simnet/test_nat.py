"""Direct paths through every kind of NAT (RFC 4787 sections 4 and 5), simulated: which pairs connect, and how soon. The
relay carries everything from the first packet on, and again after the path dies."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from enum import Enum

import pytest

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.netcheck import own_endpoints
from coder.mesh.core.paths.selector import PathState
from tests.kit.network.simulated_endpoints import Machine, SimulatedNetwork

STUN: tuple[Address, ...] = (("192.0.2.1", 3478), ("192.0.2.2", 3478))


class Kind(Enum):
    """Parts of the outer address on which mapping or filtering depends, besides the inner address."""

    ENDPOINT_INDEPENDENT = "endpoint-independent"
    ADDRESS_DEPENDENT = "address-dependent"
    PORT_DEPENDENT = "address-and-port-dependent"

    def key_of(self, far: Address) -> tuple[object, ...]:
        return {Kind.ENDPOINT_INDEPENDENT: (), Kind.ADDRESS_DEPENDENT: far[:1], Kind.PORT_DEPENDENT: far}[self]


EI, AD, PD = Kind


@dataclass
class Nat:
    """A router with one public address."""

    public: str
    mapping: Kind
    filtering: Kind
    hairpin: bool = False
    blocks_udp: bool = False
    ports: itertools.count[int] = field(default_factory=lambda: itertools.count(20_000))
    mapped: dict[object, Address] = field(default_factory=dict)
    inner: dict[Address, Address] = field(default_factory=dict)
    contacted: dict[Address, set[object]] = field(default_factory=dict)

    def translate_out(self, source: Address, to: Address) -> Address | None:
        if self.blocks_udp:
            return None
        key = (source, self.mapping.key_of(to))
        if key not in self.mapped:
            outer = self.mapped[key] = (self.public, next(self.ports))
            self.inner[outer] = source
        outer = self.mapped[key]
        self.contacted.setdefault(outer, set()).add(self.filtering.key_of(to))
        return outer

    def translate_in(self, outer: Address, source: Address) -> Address | None:
        if self.blocks_udp or self.filtering.key_of(source) not in self.contacted.get(outer, ()):
            return None
        return self.inner[outer]

    def forget(self) -> None:
        """Forget all mappings, as after a restart."""
        self.mapped.clear()
        self.inner.clear()
        self.contacted.clear()


class NatWorld(SimulatedNetwork):
    """Machines behind routers. Private networks reach each other only through them."""

    def __init__(self) -> None:
        super().__init__()
        self.nats: dict[Address, Nat] = {}
        self.one_way = False

    def add_machine(self, number: int, nat: Nat | None) -> Machine:
        machine = self.add(number)
        if nat is not None:
            machine.udp_address = (f"10.{number}.0.2", 41_641)
            self.nats[machine.udp_address] = nat
        self.measure(machine)
        return machine

    def measure(self, machine: Machine) -> None:
        """Return the results of STUN and the machine's own interfaces."""
        inner = machine.udp_address
        nat = self.nats.get(inner)
        seen = [nat.translate_out(inner, server) for server in STUN] if nat else [inner]
        addresses = [address for address in seen if address is not None]
        machine.endpoint.set_own_endpoints(own_endpoints(addresses, [inner[0]], inner[1], 0), self.now, 1e9)

    def send_udp(self, source: Address, to: Address, datagram: bytes) -> None:
        nat = self.nats.get(source)
        if nat is not None:
            if to[0] == nat.public and not nat.hairpin:
                return
            outer = nat.translate_out(source, to)
            if outer is None:
                return
        else:
            outer = source
        if self.one_way and source == self.machines[0].udp_address:
            return
        far = next((router for router in self.nats.values() if router.public == to[0]), None)
        target = far.translate_in(to, outer) if far is not None else to
        machine = next((m for m in self.machines if m.udp_address == target), None)
        if machine is None or (far is None and target in self.nats):
            return
        size, receive = len(datagram), machine.endpoint.receive_udp
        self._later(0.01, lambda: receive(bytearray(datagram), size, size, outer, self.now), machine)


def introduce(world: NatWorld, one: Machine, two: Machine) -> None:
    for machine, other in ((one, two), (two, one)):
        endpoints = tuple((str(e.ip), e.port) for e in other.endpoint._actions._own_endpoints)
        machine.endpoint.set_peer(other.config(endpoints=endpoints), world.now)


_words = itertools.count()


def exchange_words(world: NatWorld, one: Machine, two: Machine, until: float) -> int:
    """Send words ten times a second in both directions, all different, and wait for the last; return words each way."""
    words = 0
    while world.now < until:
        one.say(two, b"%d" % next(_words))
        two.say(one, b"%d" % next(_words))
        words += 1
        world.run(world.now + 0.1)
    world.run(world.now + 0.2)
    return words


def path(machine: Machine, other: Machine) -> PathState:
    return machine.endpoint.peers[other.key].paths.selector.state


NATS = list(itertools.product((EI, AD, PD), (EI, AD, PD)))


def can_connect(one: tuple[Kind, Kind], two: tuple[Kind, Kind]) -> bool:
    """Return whether hole punching can work.

    A router that changes ports needs a far one that does not filter by port, and two such routers need one that filters
    nothing.
    """
    (map1, filter1), (map2, filter2) = one, two
    if map1 is EI and map2 is EI:
        return True
    if map1 is not EI and map2 is not EI:
        return EI in (filter1, filter2) and PD not in (filter1, filter2)
    keeps_filter = filter2 if map2 is EI else filter1
    return keeps_filter is not PD


@pytest.mark.parametrize("one", NATS, ids=lambda kinds: f"{kinds[0].name}-{kinds[1].name}")
@pytest.mark.parametrize("two", NATS, ids=lambda kinds: f"{kinds[0].name}-{kinds[1].name}")
def test_direct_paths_by_nat_type(one: tuple[Kind, Kind], two: tuple[Kind, Kind]) -> None:
    world = NatWorld()
    a = world.add_machine(1, Nat("198.51.100.1", *one))
    b = world.add_machine(2, Nat("198.51.100.2", *two))
    introduce(world, a, b)
    a.say(b, b"first")
    world.run(0.3)
    assert b.heard()[0] == b"first", "the relay carries the first word immediately"
    words = exchange_words(world, a, b, 3.0)
    expected = PathState.DIRECT if can_connect(one, two) else PathState.RELAYED
    assert (path(a, b), path(b, a)) == (expected, expected)
    assert len(b.heard()) == len(set(b.heard())), "nothing twice"
    assert len(b.heard()) == len(a.heard()) + 1 == words + 1, "nothing lost while paths change"


@pytest.mark.parametrize("hairpin", [True, False])
def test_two_peers_behind_one_router(hairpin: bool) -> None:
    """The private networks are separate: only a router that hairpins packets joins them."""
    world, nat = NatWorld(), Nat("198.51.100.1", EI, EI, hairpin=hairpin)
    a, b = world.add_machine(1, nat), world.add_machine(2, nat)
    introduce(world, a, b)
    exchange_words(world, a, b, 3.0)
    assert path(a, b) is (PathState.DIRECT if hairpin else PathState.RELAYED)


@pytest.mark.parametrize("blocked", [(True, False), (False, True), (True, True)])
def test_relay_carries_everything_without_udp(blocked: tuple[bool, bool]) -> None:
    world = NatWorld()
    a = world.add_machine(1, Nat("198.51.100.1", EI, EI, blocks_udp=blocked[0]))
    b = world.add_machine(2, Nat("198.51.100.2", EI, EI, blocks_udp=blocked[1]))
    introduce(world, a, b)
    words = exchange_words(world, a, b, 20.0)
    assert path(a, b) is path(b, a) is PathState.RELAYED
    assert len(b.heard()) == len(set(b.heard())) == words


def test_one_way_path_not_used() -> None:
    world = NatWorld()
    world.one_way = True
    a = world.add_machine(1, Nat("198.51.100.1", EI, EI))
    b = world.add_machine(2, Nat("198.51.100.2", EI, EI))
    introduce(world, a, b)
    words = exchange_words(world, a, b, 20.0)
    assert path(a, b) is path(b, a) is PathState.RELAYED
    assert len(b.heard()) == len(set(b.heard())) == words


@pytest.mark.parametrize("death", ["blocked", "one way", "router restarted"])
def test_dead_path_recovers(death: str) -> None:
    world = NatWorld()
    nat = Nat("198.51.100.1", EI, PD)
    a, b = world.add_machine(1, nat), world.add_machine(2, Nat("198.51.100.2", EI, PD))
    introduce(world, a, b)
    exchange_words(world, a, b, 3.0)
    assert path(a, b) is PathState.DIRECT
    nat.blocks_udp, world.one_way = death == "blocked", death == "one way"
    if death == "router restarted":
        nat.forget()  # new ports from now on; a's own address is another
        nat.blocks_udp = True
    exchange_words(world, a, b, 8.0)
    for machine in (a, b):
        machine.stack.received.clear()
    words = exchange_words(world, a, b, 12.0)
    assert len(set(b.heard())) == words, "every word after five seconds arrives"
    assert len(set(a.heard())) == words
    nat.blocks_udp = world.one_way = False
    world.measure(a)
    began = world.now
    while (path(a, b), path(b, a)) != (PathState.DIRECT, PathState.DIRECT):
        exchange_words(world, a, b, world.now + 0.5)
        assert world.now < began + 10
