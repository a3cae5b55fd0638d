"""Ordered reports with a breaking connection, and a server that rejects some."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from coder.agent.reports.ordered_reports import OrderedReports
from coder.rpc.errors import RpcError


async def test_each_report_is_sent_once() -> None:
    queue = OrderedReports[int](10)
    for number in range(6):
        assert queue.add(number)
    reported: list[int] = []

    async def send(number: int) -> None:
        if len(reported) == 2:
            reported.append(number)
            raise trio.BrokenResourceError  # unknown whether it arrived
        reported.append(number)
        if number == 4:
            raise RpcError(1, "refused")

    with pytest.raises(trio.BrokenResourceError):
        await queue.send_loop(send)
    assert (reported, len(queue)) == ([0, 1, 2], 4)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.send_loop, send)
        await queue.wait_sent()
        assert reported == [0, 1, 2, 2, 3, 4, 5] and len(queue) == 0
        queue.add(6)
        await trio.testing.wait_all_tasks_blocked()
        assert reported[-1] == 6
        nursery.cancel_scope.cancel()


async def test_queue_is_bounded() -> None:
    queue = OrderedReports[int](2)
    assert [queue.add(number) for number in range(3)] == [True, True, False]
    assert len(queue) == 2
