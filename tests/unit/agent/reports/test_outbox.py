"""All kinds of reports together."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from coder.agent.lifecycle import Lifecycle, State
from coder.agent.reports.ordered_reports import OrderedReports
from coder.agent.reports.outbox import AWAY_GRACE, REPORT_GRACE, Outbox
from coder.agent.workspace.logs import LogQueue
from coder.rpc.errors import OUTCOME_UNKNOWN, RpcError
from coder.rpc.proto import agent_pb2


async def test_quiet_when_all_sent() -> None:
    logs, life, results = (
        LogQueue(lambda: datetime.now(UTC)),
        Lifecycle(lambda: datetime.now(UTC)),
        OrderedReports[int](9),
    )
    outbox = Outbox({"log lines": logs, "states": life, "script results": results})
    assert outbox.describe() == ""
    await outbox.wait_idle()
    logs.add(b"x" * 16, "said", agent_pb2.Log.INFO)
    life.set(State.STARTING)
    results.add(1)
    assert outbox.describe() == "unsent log lines: 1, unsent states: 1, unsent script results: 1"
    quiet = trio.Event()

    async def wait() -> None:
        await outbox.wait_idle()
        quiet.set()

    async def send(_: object) -> agent_pb2.BatchCreateLogsResponse:
        return agent_pb2.BatchCreateLogsResponse()

    async def result(_: int) -> None:
        life.set(State.READY)  # sending the last kind adds a report of an earlier one

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        nursery.start_soon(logs.send_loop, send)
        nursery.start_soon(results.send_loop, result)
        life.confirm()
        await logs.wait_sent()
        await trio.testing.wait_all_tasks_blocked()
        assert not quiet.is_set() and outbox.describe() == "unsent states: 1"
        life.confirm()
        await quiet.wait()
        nursery.cancel_scope.cancel()


async def test_full_server_log_is_quiet() -> None:
    logs = LogQueue(lambda: datetime.now(UTC))
    logs.add(b"x" * 16, "said", agent_pb2.Log.INFO)

    async def enough(_: object) -> agent_pb2.BatchCreateLogsResponse:
        return agent_pb2.BatchCreateLogsResponse(log_limit_exceeded=True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(logs.send_loop, enough)
        await Outbox({"log lines": logs}).wait_idle()
        nursery.cancel_scope.cancel()


async def test_lines_of_unknown_outcome_are_sent_once() -> None:
    logs, sent = LogQueue(lambda: datetime.now(UTC)), list[str]()
    logs.add(b"x" * 16, "first", agent_pb2.Log.INFO)

    async def send(request: agent_pb2.BatchCreateLogsRequest) -> agent_pb2.BatchCreateLogsResponse:
        sent.extend(line.output for line in request.logs)
        if sent == ["first"]:
            raise RpcError(OUTCOME_UNKNOWN, "the database does not tell whether the change was made")
        return agent_pb2.BatchCreateLogsResponse()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(logs.send_loop, send)
        await logs.wait_sent()
        logs.add(b"x" * 16, "second", agent_pb2.Log.INFO)
        await logs.wait_sent()
        nursery.cancel_scope.cancel()
    assert sent == ["first", "second"]


@pytest.mark.parametrize(
    ("connected", "waits"),
    [
        ([True], REPORT_GRACE),
        ([False], AWAY_GRACE),
        ([False, True], REPORT_GRACE),
        ([True, True, False], 3 * AWAY_GRACE),
    ],
)
async def test_wait_follows_connection(connected: list[bool], waits: float, autojump_clock: object) -> None:
    """`connected` are the states at each look, the last one for good."""
    logs, began = LogQueue(lambda: datetime.now(UTC)), trio.current_time()
    logs.add(b"x" * 16, "said", agent_pb2.Log.INFO)
    states = {number * AWAY_GRACE: state for number, state in enumerate(connected)}

    def is_connected() -> bool:
        return states[max(at for at in states if at <= trio.current_time() - began)]

    await Outbox({"log lines": logs}).deliver(is_connected)
    assert waits - AWAY_GRACE <= trio.current_time() - began <= waits + AWAY_GRACE


async def test_nothing_unsent_ends_at_once() -> None:
    with trio.fail_after(60):
        await Outbox({}).deliver(lambda: True)
