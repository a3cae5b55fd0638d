"""Pings to a relay: answers at the last moment count, and a check does not end the connection that came after it."""

from __future__ import annotations

import trio
import trio.testing

from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion
from coder.mesh.core.wire import derp
from coder.mesh.drivers.derp_client import RelayPool
from coder.mesh.drivers.derp_connection import ANSWER_TIMEOUT, PING_TIMEOUT
from coder.mesh.drivers.pipe import PipeStream, pipe_pair
from coder.mesh.drivers.transport import DerpTransport
from tests.unit.mesh.drivers.test_derp import Inbox, map_of, private_key

HELLO = derp.ServerKey(private_key(9).public).encode()
PING = derp.DerpPing(bytes(8)).encode()


def transport_to(sides: list[PipeStream]) -> DerpTransport:
    ours, theirs = pipe_pair()
    sides.append(theirs)
    return DerpTransport(ours, leftover=HELLO)


async def wait_ping(side: PipeStream) -> None:
    received = b""
    while PING not in received:
        received += await side.receive_some()


async def test_answer_at_deadline_counts(autojump_clock: trio.testing.MockClock) -> None:
    """A process that stood still meets the deadline before it reads what waits in its socket."""
    sides: list[PipeStream] = []

    async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
        await trio.lowlevel.checkpoint()
        return transport_to(sides)

    async with trio.open_nursery() as nursery:
        inbox = Inbox()
        pool = RelayPool(nursery, dial, private_key(1), map_of(1), inbox, random_bytes=bytes)
        pool.set_home(1)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            await wait_ping(sides[0])
            await trio.sleep(ANSWER_TIMEOUT)
            await sides[0].send_all(derp.KeepAlive().encode())
        await wait_ping(sides[0])
        await trio.sleep(2 * ANSWER_TIMEOUT)
        assert inbox.states == [(1, True), (1, False), (1, True)], "only the unanswered ping ends the connection"
        nursery.cancel_scope.cancel()


async def test_check_leaves_next_connection(autojump_clock: trio.testing.MockClock) -> None:
    sides: list[PipeStream] = []
    dials: list[float] = []

    async def dial(_region: DerpRegion, _node: DerpNode, /) -> DerpTransport:
        dials.append(trio.current_time())
        await trio.sleep(0 if len(dials) == 1 else 2 * PING_TIMEOUT)
        return transport_to(sides)

    async with trio.open_nursery() as nursery:
        inbox = Inbox()
        pool = RelayPool(nursery, dial, private_key(1), map_of(1), inbox, random_bytes=bytes)
        pool.set_home(1)
        await trio.testing.wait_all_tasks_blocked()
        pool.check()
        await sides[0].aclose()
        while len(inbox.states) < 3:
            await inbox.changed.park()
        assert len(dials) == 2
        pool.check()
        while len(inbox.states) < 4:
            await inbox.changed.park()
        assert not pool.is_connected(1), "a check without an answer ends the connection"
        nursery.cancel_scope.cancel()
