"""Regions of several relays, some of them dead: order, times and memory of attempts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.paths.derpmap import DerpMap, DerpNode, DerpRegion
from coder.mesh.core.wire import derp
from coder.mesh.drivers.derp_client import RelayPool
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from coder.mesh.drivers.region import first_to_answer
from coder.mesh.drivers.transport import DerpTransport

NODES = tuple(DerpNode(name, 1, f"{name}.test") for name in ("a", "b", "c"))
MAP = DerpMap({1: DerpRegion(1, "x", "X", NODES)})
NEVER = 1e9


class Scene:
    """Nodes that answer after so many seconds, or fail then when listed as refusing."""

    def __init__(self, after: dict[str, float], refusing: str = "") -> None:
        self.after = after
        self.refusing = refusing
        self.began = trio.current_time()
        self.asked: list[tuple[float, str]] = []
        self.discarded: list[str] = []

    async def ask(self, node: DerpNode) -> str:
        self.asked.append((trio.current_time() - self.began, node.name))
        await trio.sleep(self.after[node.name])
        if node.name in self.refusing:
            raise OSError(f"{node.name} refused")
        return node.name

    async def discard(self, answer: str) -> None:
        self.discarded.append(answer)


@pytest.mark.parametrize(
    ("after", "refusing", "answer", "asked"),
    [
        ({"a": 1.0}, "", "a", [(0, "a")]),
        ({"a": NEVER, "b": 0.1}, "", "b", [(0, "a"), (1.5, "b")]),
        ({"a": 0.2, "b": 0.1}, "a", "b", [(0, "a"), (0.2, "b")]),
        ({"a": 4.0, "b": NEVER, "c": NEVER}, "", "a", [(0, "a"), (1.5, "b"), (3, "c")]),
        ({"a": 2.0, "b": 2.0, "c": 5.0}, "ab", "c", [(0, "a"), (1.5, "b"), (3, "c")]),
    ],
)
async def test_every_node_is_tried(
    autojump_clock: trio.testing.MockClock,
    after: dict[str, float],
    refusing: str,
    answer: str,
    asked: list[tuple[float, str]],
) -> None:
    scene = Scene(after, refusing)
    assert await first_to_answer(NODES, scene.ask, scene.discard) == answer
    assert [name for _, name in scene.asked] == [name for _, name in asked]
    assert [at for at, _ in scene.asked] == pytest.approx([at for at, _ in asked])
    assert scene.discarded == []


async def test_last_failure_is_raised(autojump_clock: trio.testing.MockClock) -> None:
    with pytest.raises(OSError, match="b refused"):
        await first_to_answer(NODES, Scene({"a": 0.1, "b": 2.0, "c": 0.1}, "abc").ask)


async def test_unused_answers_are_discarded(autojump_clock: trio.testing.MockClock) -> None:
    """Two at the same time, and one that came when the caller had just given up."""
    scene = Scene(dict.fromkeys("abc", 0.0))
    started = trio.Event()

    async def answer_together(node: DerpNode) -> str:
        if node.name == "b":
            started.set()
        with trio.CancelScope(shield=True):
            await started.wait()
        return node.name

    answer = await first_to_answer(NODES, answer_together, scene.discard)
    assert sorted([answer, *scene.discarded]) == ["a", "b"]

    scene.discarded.clear()
    with trio.CancelScope() as given_up:

        async def answer_late(node: DerpNode) -> str:
            await trio.lowlevel.checkpoint()
            given_up.cancel()
            return node.name

        await first_to_answer(NODES, answer_late, scene.discard)
    assert given_up.cancelled_caught
    assert scene.discarded == ["a"]


class Events:
    """A node's relay events."""

    def __init__(self) -> None:
        self.connected: list[tuple[float, bool]] = []

    def relay_connected(self, region: int, connected: bool) -> None:
        self.connected.append((trio.current_time(), connected))

    def relay_packets(self, region: int, source: bytes, packets: list[bytes]) -> None: ...
    def relay_flush(self) -> None: ...
    def relay_drained(self, region: int) -> None: ...
    def relay_peer_gone(self, region: int, key: bytes) -> None: ...


async def _stay_silent(_theirs: PipeStream) -> None:
    """Accept connections and send nothing."""
    await trio.sleep_forever()


async def _hang_up(theirs: PipeStream) -> None:
    await theirs.aclose()


async def _greet_and_hang_up(theirs: PipeStream) -> None:
    await theirs.send_all(derp.ServerKey(PrivateKey(bytes([9]) * 32).public).encode())
    await theirs.receive_some()
    await theirs.aclose()


@pytest.mark.parametrize(("dead", "at"), [(None, 1.5), (_stay_silent, 1.5), (_hang_up, 0.0)])
async def test_dead_first_relay_is_skipped(
    autojump_clock: trio.testing.MockClock, dead: Callable[[PipeStream], Awaitable[None]] | None, at: float
) -> None:
    """Whether it accepts no connection, sends nothing, or hangs up before its welcome."""
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    began, dialled, events = trio.current_time(), list[str](), Events()
    async with trio.open_nursery() as nursery:

        async def dial(_region: DerpRegion, node: DerpNode, /) -> DerpTransport:
            dialled.append(node.name)
            if node.name == "a" and dead is None:
                await trio.sleep(NEVER)
            ours, theirs = pipe_pair()
            nursery.start_soon(dead if node.name == "a" and dead else server.serve_connection, theirs)
            return DerpTransport(ours)

        pool = RelayPool(nursery, dial, PrivateKey(bytes([1]) * 32), MAP, events)
        pool.set_home(1)
        await trio.sleep(5)
        assert dialled == ["a", "b"]
        assert [up for _, up in events.connected] == [True]
        assert events.connected[0][0] - began == pytest.approx(at, abs=0.1)
        server.disconnect_all()
        await trio.sleep(1)
        assert dialled == ["a", "b", "b"]
        assert pool.is_connected(1)
        nursery.cancel_scope.cancel()


async def test_relay_that_hangs_up_is_left(autojump_clock: trio.testing.MockClock) -> None:
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    dialled, events = list[str](), Events()
    async with trio.open_nursery() as nursery:

        async def dial(_region: DerpRegion, node: DerpNode, /) -> DerpTransport:
            dialled.append(node.name)
            ours, theirs = pipe_pair()
            nursery.start_soon(_greet_and_hang_up if node.name == "a" else server.serve_connection, theirs)
            return DerpTransport(ours)

        pool = RelayPool(nursery, dial, PrivateKey(bytes([1]) * 32), MAP, events)
        pool.set_home(1)
        await trio.sleep(60)
        assert dialled == ["a", "b"]
        assert [up for _, up in events.connected] == [True, False, True]
        server.disconnect_all()
        await trio.sleep(1)
        assert dialled == ["a", "b", "b"]
        nursery.cancel_scope.cancel()


async def test_silent_region_is_retried(
    autojump_clock: trio.testing.MockClock,
) -> None:
    dialled = []
    async with trio.open_nursery() as nursery:

        async def dial(_region: DerpRegion, node: DerpNode, /) -> DerpTransport:
            dialled.append(node.name)
            await trio.sleep(NEVER)
            raise AssertionError

        pool = RelayPool(nursery, dial, PrivateKey(bytes([1]) * 32), MAP, Events())
        pool.set_home(1)
        await trio.sleep(10.01)
        assert pool.status()[0].problem == "no relay of region 1 answered within 10 s"
        await trio.sleep(9)
        assert dialled == ["a", "b", "c"] * 2
        nursery.cancel_scope.cancel()
