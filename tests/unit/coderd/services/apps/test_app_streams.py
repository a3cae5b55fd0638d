"""Open streams are checked soon after a change of rights, and less often when their checks take long."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import trio
import trio.testing

from coder.appproxy.apps.app_visitor import Visitor
from coder.coderd.services.apps.app_streams import NOTICE_PART, NOTICE_PAUSE, OpenStreams
from coder.domain.access.credentials import Credentials


class Changes:
    """Announces changes of rights."""

    def __init__(self) -> None:
        self._next = trio.Event()

    def next_change(self) -> trio.Event:
        return self._next

    def announce(self) -> None:
        event, self._next = self._next, trio.Event()
        event.set()


class Checked(OpenStreams):
    """Streams whose visitor may stay as long as `allowed`; each check takes `took` seconds."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(cast("Any", SimpleNamespace(services=SimpleNamespace(rights_changes=changes))))
        self.allowed, self.took, self.times = True, 0.0, list[float]()

    async def may_use_terminal(self, visitor: Visitor, agent_id: Any) -> bool:
        self.times.append(trio.current_time())
        await trio.sleep(self.took)
        return self.allowed


async def test_lost_right_ends_stream_soon(autojump_clock: trio.testing.MockClock) -> None:
    changes = Changes()
    streams = Checked(changes)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(streams._check_after_changes)
        with streams.track_terminal(Visitor(Credentials(), uuid4(), ""), uuid4()) as scope:
            await trio.sleep(0.01)
            changes.announce()  # one that concerns other users
            await trio.sleep(0.01)
            assert len(streams.times) == 1
            streams.allowed = False
            changes.announce()
            began = trio.current_time()
            await trio.sleep(60)
        assert scope.cancelled_caught
        assert trio.current_time() - began <= NOTICE_PAUSE
        nursery.cancel_scope.cancel()


async def test_slow_checks_become_rarer(autojump_clock: trio.testing.MockClock) -> None:
    changes = Changes()
    streams = Checked(changes)
    streams.took = 1.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(streams._check_after_changes)
        with streams.track_terminal(Visitor(Credentials(), uuid4(), ""), uuid4()):
            for _ in range(500):
                changes.announce()
                await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    gaps = [later - earlier for earlier, later in zip(streams.times, streams.times[1:], strict=False)]
    assert gaps and min(gaps) >= streams.took / NOTICE_PART
