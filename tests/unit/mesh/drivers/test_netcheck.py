"""Times and callbacks of network checks, with a jumping clock and a scripted network."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import trio
import trio.testing

from coder.mesh.core.paths.candidates import Address
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.wire import stun
from coder.mesh.core.wire.address import UdpAddress
from coder.mesh.drivers.interfaces import Network
from coder.mesh.drivers.netcheck import Netcheck


@pytest.fixture(autouse=True)
def _no_router(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests send nothing to the machine's real router."""
    monkeypatch.setattr("coder.mesh.drivers.portmap.find_gateway", lambda: None)


def region(number: int, *, stun_only: bool = False) -> DerpRegion:
    node = DerpNode(f"{number}a", number, "127.0.0.1", stun_port=3478 if stun_only else -1, stun_only=stun_only)
    return DerpRegion(number, f"r{number}", f"Region {number}", (node,))


def map_of(*regions: DerpRegion) -> DerpMap:
    return DerpMap({r.region_id: r for r in regions})


class Scene:
    """A Netcheck with its scripted surroundings."""

    def __init__(self, derp_map: DerpMap, latencies: dict[int, float] | None = None, *, direct: bool = True) -> None:
        self.latencies = latencies or {}
        self.probed: list[tuple[float, int]] = []
        self.homes: list[int] = []
        self.endpoints: list[tuple[list[Address], float]] = []
        self.rebinds = 0
        self.slept = 0.0
        self.asked: list[float] = []
        self.active = True
        self.seen_as: Address | None = ("203.0.113.9", 4242)
        self.netcheck = Netcheck(
            derp_map,
            self.probe if latencies is not None else None,
            self.send,
            lambda: (41000, 0),
            direct=direct,
            seed=1,
            is_active=lambda: self.active,
            on_home=self.homes.append,
            on_endpoints=lambda published, fresh: self.endpoints.append((published, fresh)),
            on_rebind=self.on_rebind,
        )

    def on_rebind(self, slept: float) -> None:
        self.rebinds += 1
        self.slept += slept

    async def probe(self, where: DerpRegion, node: DerpNode, /) -> float:
        self.probed.append((trio.current_time(), where.region_id))
        latency = self.latencies.get(where.region_id)
        if latency is None:
            raise OSError("no answer")
        await trio.sleep(latency)
        return latency

    def send(self, datagram: bytes, to: Address) -> None:
        self.asked.append(trio.current_time())
        if self.seen_as:
            request = stun.parse_request_untrusted(datagram)
            answer = stun.BindingResponse(request.tx_id, UdpAddress(*self.seen_as)).encode()
            self.netcheck.on_stun_untrusted(answer)


async def run(scene: Scene, script: Callable[[], Any]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.netcheck.run)
        await script()
        nursery.cancel_scope.cancel()


async def test_single_relay_home_before_measurement(autojump_clock: trio.testing.MockClock) -> None:
    scene = Scene(map_of(region(1), region(2, stun_only=True)), {1: 2.0})

    async def script() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert scene.homes == [1]
        await trio.sleep(3)
        assert scene.netcheck.latencies == {1: 2.0}

    await run(scene, script)


async def test_nearest_relay_becomes_home(autojump_clock: trio.testing.MockClock) -> None:
    scene = Scene(map_of(region(1), region(2), region(3)), {1: 0.09, 2: 0.03})

    async def script() -> None:
        await trio.sleep(1)
        assert scene.netcheck.home == 2
        assert scene.netcheck.latencies == {1: 0.09, 2: 0.03}
        scene.netcheck.set_map(map_of(region(1), region(3)))
        await trio.sleep(1)
        assert scene.netcheck.home == 1
        before = len(scene.probed)
        await trio.sleep(301)
        assert len(scene.probed) == before + 2, "measured again after five minutes"

    await run(scene, script)


@pytest.mark.parametrize(
    ("latencies", "homes"),
    [
        ({3: 0.05, 2: 1e9}, {3}),  # one relay does not answer
        ({3: 0.05, 2: 0.045}, {3}),  # the other is hardly nearer
        ({3: 0.05, 2: 0.01}, {3, 2}),
        ({2: 0.05}, {3, 2}),  # the first choice is dead
    ],
)
async def test_embedded_relay_home_until_measured(
    autojump_clock: trio.testing.MockClock, latencies: dict[int, float], homes: set[int]
) -> None:
    scene = Scene(map_of(region(1), region(2), replace(region(3), embedded_relay=True)), latencies)

    async def script() -> None:
        await trio.testing.wait_all_tasks_blocked()
        assert scene.homes == [3], "the home does not wait for measurements"
        assert scene.netcheck.latencies == {}
        await trio.sleep(6)
        assert set(scene.homes) == homes
        assert scene.netcheck.home == scene.homes[-1] == (3 if homes == {3} else 2)
        assert scene.netcheck.latencies == {number: took for number, took in latencies.items() if took < 5}

    await run(scene, script)


async def test_relay_is_chosen_without_probe(autojump_clock: trio.testing.MockClock) -> None:
    scene = Scene(map_of(region(1), region(2)))

    async def script() -> None:
        await trio.sleep(0.1)
        assert scene.netcheck.home == 2
        scene.netcheck.set_map(map_of())
        assert scene.netcheck.home == 0

    await run(scene, script)


async def test_local_endpoints_before_stun_results(
    autojump_clock: trio.testing.MockClock,
) -> None:
    scene = Scene(map_of(region(1), region(2, stun_only=True)), {})

    async def script() -> None:
        await trio.sleep(0.1)
        first, last = scene.endpoints[0][0], scene.endpoints[-1][0]
        assert scene.seen_as not in first
        assert last[0] == scene.seen_as
        assert ("203.0.113.9", 41000) in last, "the mapped address with our own port, for static forwards"
        assert set(first) < set(last)
        assert scene.netcheck.mappings.udp_works
        asked_before = len(scene.asked)
        await trio.sleep(60)
        assert asked_before + 2 <= len(scene.asked) <= asked_before + 3, "every 20 to 26 seconds while a peer is active"
        scene.active = False
        await trio.sleep(27)
        asked_before = len(scene.asked)
        await trio.sleep(300)
        assert len(scene.asked) == asked_before
        scene.netcheck.refresh_endpoints()
        await trio.sleep(0.1)
        assert len(scene.asked) == asked_before + 1

    await run(scene, script)


async def test_silent_servers_delay_no_result(autojump_clock: trio.testing.MockClock) -> None:
    scene = Scene(map_of(region(1), region(2, stun_only=True)), {})
    scene.seen_as = None

    async def script() -> None:
        scene.endpoints.clear()
        began = trio.current_time()
        while not scene.endpoints:
            await trio.sleep(0.05)
        assert trio.current_time() - began < 0.7

    await run(scene, script)


async def test_disabled_direct_paths_publish_nothing(autojump_clock: trio.testing.MockClock) -> None:
    scene = Scene(map_of(region(1), region(2, stun_only=True)), {}, direct=False)

    async def script() -> None:
        await trio.sleep(30)
        assert scene.endpoints == []
        assert scene.asked == []
        assert scene.homes[-1] == 1

    await run(scene, script)


async def test_sleep_restarts_network_checks(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asleep = 0.0
    monkeypatch.setattr("coder.mesh.drivers.netcheck.elapsed", lambda: 1.7e9 + trio.current_time() + asleep)
    scene = Scene(map_of(region(1)), {1: 0.1})

    async def script() -> None:
        nonlocal asleep
        await trio.sleep(60)
        assert scene.rebinds == 0
        asleep = 3600.0
        probed = len(scene.probed)
        await trio.sleep(6)
        assert scene.rebinds == 1
        assert scene.slept == pytest.approx(3600.0, abs=0.001)
        assert len(scene.probed) == probed + 1
        await trio.sleep(60)
        assert scene.rebinds == 1

    await run(scene, script)


@pytest.mark.parametrize(
    ("now", "rebinds"),
    [
        (Network(("10.0.0.1", "10.0.0.2"), ("10.0.0.1",)), 0),  # a new address
        (Network(("10.0.0.2",), ("10.0.0.2",)), 1),  # a replaced address
        (Network(("10.0.0.1",), ()), 1),  # the route is removed, the address stays
        (Network(("10.0.0.1", "10.0.0.2"), ("10.0.0.2",)), 1),  # a cable takes over from the wireless network
    ],
)
async def test_lost_source_address_restarts_paths(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch, now: Network, rebinds: int
) -> None:
    networks = [Network(("10.0.0.1",), ("10.0.0.1",)), now]

    async def next_change(known: Network) -> Network:
        await trio.sleep(5)
        if not networks:
            await trio.sleep_forever()
        return networks.pop(0)

    monkeypatch.setattr("coder.mesh.drivers.netcheck.current_network", lambda: networks.pop(0))
    monkeypatch.setattr("coder.mesh.drivers.netcheck.wait_network_changed", next_change)
    scene = Scene(map_of(region(1), region(2, stun_only=True)), {1: 0.1})

    async def script() -> None:
        await trio.sleep(4)
        asked_before, probed = len(scene.asked), len(scene.probed)
        await trio.sleep(2)
        assert scene.rebinds == rebinds
        assert len(scene.asked) > asked_before, "STUN servers are asked again"
        assert len(scene.probed) == probed + 1
        assert {ip for ip, _ in scene.endpoints[-1][0]} >= set(now.addresses)

    await run(scene, script)


async def test_dead_first_node_is_skipped(autojump_clock: trio.testing.MockClock) -> None:
    dead, living = DerpNode("1a", 1, "dead.test"), DerpNode("1b", 1, "living.test")
    scene = Scene(map_of(DerpRegion(1, "r1", "Region 1", (dead, living))), {})

    async def probe(_where: DerpRegion, node: DerpNode, /) -> float:
        await trio.sleep(0.02 if node is living else 1e9)
        return 0.02

    scene.netcheck._probe = probe

    async def script() -> None:
        await trio.sleep(2)
        assert scene.netcheck.latencies == {1: 0.02}

    await run(scene, script)
