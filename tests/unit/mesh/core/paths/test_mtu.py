"""Path MTU: the search itself, and two endpoints over paths of every width."""

from __future__ import annotations

import random

import pytest

from coder.mesh.core.paths import mtu
from coder.mesh.core.paths.mtu import ETHERNET, FLOOR, JUMBO, RAISE_AFTER, STANDARD, MtuEvent, MtuSearch, MtuState
from coder.mesh.core.paths.outstanding_pings import SendPing
from coder.mesh.core.paths.probing import PeerPaths
from coder.mesh.core.paths.selector import Measured, PathState, Selector, is_better
from tests.kit.network.simulated_endpoints import Machine, SimulatedNetwork, acquainted, state


def search_until_quiet(search: MtuSearch, width: int, now: float) -> tuple[float, int]:
    """Probe over a path of `width` bytes; return (when it fell silent, probes sent)."""
    probes = 0
    while (size := search.due(now, 0.1)) is not None:
        probes += 1
        if size <= width:
            now += 0.02
            search.answered(size, now)
        else:
            now += 0.1
        assert probes < 60
    return now, probes


# -- the search -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [FLOOR, STANDARD])
@pytest.mark.parametrize("width", [548, 600, 1199, 1200, 1232, 1309, 1310, 1312, 1400, 1451, 1452, 1472, 8952, 65_000])
def test_search_finds_path_mtu(first: int, width: int) -> None:
    if first > width:
        return
    search = MtuSearch(first, 0.0)
    silent, probes = search_until_quiet(search, width, 0.0)
    assert search.state is MtuState.COMPLETE
    assert search.carried <= width
    if width < ETHERNET:
        assert width - search.carried <= 32 + 16
    else:
        assert search.carried == (JUMBO if width >= JUMBO else ETHERNET)
    assert silent < 3.0
    assert probes <= 20
    assert search.at == silent + RAISE_AFTER


def test_larger_sizes_retried_after_interval() -> None:
    search = MtuSearch(STANDARD, 0.0)
    now, _ = search_until_quiet(search, STANDARD, 0.0)
    assert search.due(now + RAISE_AFTER - 1, 0.1) is None
    search_until_quiet(search, JUMBO, now + RAISE_AFTER)
    assert search.carried == JUMBO


def test_size_rejected_by_loss_or_refusal() -> None:
    search = MtuSearch(STANDARD, 0.0)
    assert [search.due(float(n), 1.0) for n in range(3)] == [ETHERNET] * 3
    assert (search.due(3.0, 1.0) or ETHERNET) < ETHERNET
    search = MtuSearch(STANDARD, 0.0)
    assert search.due(0.0, 0.1) == ETHERNET
    assert search.due(0.05, 0.1) is None, "an answer may still come"
    search.refused(ETHERNET, 0.05)
    assert (search.due(0.05, 0.1) or ETHERNET) < ETHERNET


def test_random_loss_keeps_path_wide() -> None:
    """Random loss of all large pings looks like a black hole; the lost size is tried again."""
    search = MtuSearch(STANDARD, 0.0)
    now, _ = search_until_quiet(search, JUMBO, 0.0)
    search.on_black_hole(now)
    assert search.carried == FLOOR
    now, _ = search_until_quiet(search, JUMBO, now)
    assert search.carried == JUMBO


def test_genuine_peers_get_standard_probes() -> None:
    search = MtuSearch(STANDARD, 0.0)
    assert search.due(0.0, 0.1) == ETHERNET
    search.answered(ETHERNET, 0.02, mirrored=False)
    assert search.carried == STANDARD
    assert search.due(0.02, 0.1) is None
    assert search.state is MtuState.COMPLETE


def test_table_is_closed() -> None:
    assert {before for before, _ in mtu.TABLE} == set(MtuState)
    assert {event for _, event in mtu.TABLE} == set(MtuEvent)


def test_wide_path_beats_narrow_path() -> None:
    narrow, wide = Measured(("192.168.1.1", 1), 0.001, FLOOR), Measured(("203.0.113.1", 1), 0.2)
    assert is_better(wide, narrow)
    assert not is_better(narrow, wide)
    selector = Selector()
    selector.on_pong(narrow, 0.0)
    selector.on_pong(wide, 0.1)
    assert selector.best == wide


# -- two endpoints --------------------------------------------------------------------------------------------------


def inner_mtu(machine: Machine, peer: Machine) -> int | None:
    """Return the largest inner packet set in its stack."""
    return machine.stack.mtus[peer.overlay]


@pytest.mark.parametrize(
    ("width", "packets"),
    [(548, 512), (1200, 1168), (1232, 1184), (1312, None), (1400, 1344), (1452, 1420), (9000, 8920)],
)
def test_every_path_width_is_used(width: int, packets: int | None) -> None:
    world = SimulatedNetwork()
    world.largest = width
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(3.0)
    two.say(one, b"hello")
    world.run(6.0)
    for machine, other in ((one, two), (two, one)):
        assert state(machine, other) is PathState.DIRECT
        assert inner_mtu(machine, other) == packets
    relayed = one.sent_relay
    largest = (packets or 1280) - 40
    one.say(two, bytes(largest))
    world.run(6.2)
    assert one.sent_relay == relayed, "the largest packet takes the direct path"
    assert two.heard()[-1] == bytes(largest)


def test_standard_path_skips_small_pings() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    sizes: list[int] = []
    world.passes = lambda source, to, datagram: bool(sizes.append(len(datagram)) or True)
    one.say(two, b"hello")
    world.run(0.13)
    assert state(one, two) is PathState.DIRECT
    assert min(size for size in sizes if size > 200) == STANDARD


def test_narrowed_path_noticed_in_time() -> None:
    """A black hole: small datagrams pass, so the path looks alive to all but the data."""
    world = SimulatedNetwork()
    world.largest = 9000
    one, two = acquainted(world)
    for second in range(5):
        one.say(two, b"hello")
        world.run(second + 1.0)
    assert inner_mtu(one, two) == 8920
    world.largest = 1250
    began = world.now
    while inner_mtu(one, two) == 8920:
        one.say(two, b"hello")
        world.run(world.now + 0.5)
        assert world.now - began < 5.0
    assert one.stack.changes[-1] == two.overlay, "data lost in the black hole is retransmitted"
    world.run(world.now + 2.0)
    assert inner_mtu(one, two) == 1216
    assert state(one, two) is PathState.DIRECT


def test_refused_datagrams_narrow_path_immediately() -> None:
    """The kernel has learnt of a smaller MTU by ICMP: it refuses to send instead of losing."""
    world = SimulatedNetwork()
    world.largest = 1452
    one, two = acquainted(world)
    for second in range(2):
        one.say(two, b"hello")
        world.run(second + 1.0)
    assert inner_mtu(one, two) == 1420
    world.largest = one.refuses_beyond = 1300
    one.say(two, bytes(1360))
    world.run(world.now + 0.3)
    assert two.heard()[-1] == bytes(1360), "this packet uses the relay"
    assert state(one, two) is PathState.DIRECT
    world.run(world.now + 1.0)
    assert inner_mtu(one, two) in (1232, 1248, 1264)


def test_genuine_peer_gets_standard_packets() -> None:
    """The peer answers every ping with 1310 bytes."""
    address = ("203.0.113.9", 1)
    paths = PeerPaths(random.Random(1).randbytes)
    paths.set_endpoints([address], 0.0)
    (ping, _) = paths.on_send(0.0)
    assert isinstance(ping, SendPing)
    assert paths.on_pong(ping.tx, address, 0.01, STANDARD)
    (probe,) = paths.on_timer(0.01)
    assert isinstance(probe, SendPing) and probe.size == ETHERNET
    assert paths.on_pong(probe.tx, address, 0.02, STANDARD)
    assert paths.carries == STANDARD
    assert paths.on_timer(0.02) == [], "and gets no further probes"


def test_idle_path_measured_with_data() -> None:
    address = ("203.0.113.9", 1)
    paths = PeerPaths(random.Random(1).randbytes)
    paths.set_endpoints([address], 0.0)
    (ping,) = paths.on_call_me_maybe([address], 0.0)
    assert isinstance(ping, SendPing)
    assert paths.on_pong(ping.tx, address, 0.01, STANDARD)
    assert [a for a in paths.on_timer(0.7) if isinstance(a, SendPing)] == [], "the path is not in use"
    assert paths.on_send(1.0) == []
    assert paths.next_wake() is not None
    assert [a.size for a in paths.on_timer(1.0) if isinstance(a, SendPing)] == [ETHERNET]


def test_probes_stop_in_idle_session() -> None:
    world = SimulatedNetwork()
    one, two = acquainted(world)
    one.say(two, b"hello")
    world.run(120.0)
    sent = one.sent_udp
    world.run(3000.0)
    assert one.sent_udp - sent < 40, "nothing but WireGuard's own"
    assert one.endpoint.peers[two.key].paths.next_wake() is None


@pytest.mark.parametrize("width", [600, 1232, 1312, 1452, 9000])
def test_transfer_survives_narrowing_path(width: int) -> None:
    """Uses real TCP above, so that the size the endpoint sets is the size of the packets."""
    world = SimulatedNetwork()
    world.largest = width
    one, two = acquainted(world, real=True)
    sizes: list[int] = []
    world.passes = lambda source, to, datagram: bool(sizes.append(len(datagram)) or True)
    listener = two.tcp.tcp_listen(80)
    socket = one.tcp.tcp_connect(two.overlay, 80, world.now)
    one.endpoint.flush(world.now)
    data = random.Random(width).randbytes(600_000)
    written = 0
    read = b""
    accepted = None
    narrowed = False
    while len(read) < len(data):
        world.run(world.now + 0.05)
        assert world.now < 60
        accepted = accepted or listener.accept_nowait()
        if accepted is not None:
            read += accepted.read_nowait(1 << 20)
        if socket.connected and world.now > 2.0:
            written += socket.write_nowait(data[written : written + 100_000])
        if len(read) > 200_000 and not narrowed:
            narrowed = True
            assert max(sizes[-200:]) > width - 64 if width < 1500 else max(sizes) > 8000
            world.largest = 580
        for machine in (one, two):
            machine.endpoint.flush(world.now)
    assert read == data
    assert state(one, two) is PathState.DIRECT
