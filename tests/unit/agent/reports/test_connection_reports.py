"""Sessions on their way to the connection log: kinds, fields, bounds."""

from __future__ import annotations

import pytest
import trio

from coder.agent.reports.connection_reports import LIMIT, ReportQueue
from coder.agent.state import ConnectionEvent
from coder.rpc.proto import agent_pb2

IDENT = bytes(range(16))


async def sent_reports(*events: ConnectionEvent) -> list[agent_pb2.Connection]:
    queue = ReportQueue()
    for event in events:
        queue.note(event)
    reported: list[agent_pb2.Connection] = []

    async def send(report: agent_pb2.ReportConnectionRequest) -> None:
        reported.append(report.connection)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(queue.send_loop, send)
        await queue.wait_sent()
        nursery.cancel_scope.cancel()
    return reported


@pytest.mark.parametrize(
    ("kind", "reported"),
    [
        ("ssh", agent_pb2.Connection.SSH),
        ("vscode", agent_pb2.Connection.VSCODE),
        ("jetbrains", agent_pb2.Connection.JETBRAINS),
        ("reconnecting_pty", agent_pb2.Connection.RECONNECTING_PTY),
    ],
)
async def test_sessions_are_reported_in_order(kind: str, reported: agent_pb2.Connection.Type) -> None:
    begin = ConnectionEvent(id=IDENT, connect=True, kind=kind, ip="192.0.2.7")
    end = ConnectionEvent(id=IDENT, connect=False, kind=kind, ip="192.0.2.7", status_code=130, reason="gone")
    first, last = await sent_reports(begin, end)
    assert (first.action, last.action) == (agent_pb2.Connection.CONNECT, agent_pb2.Connection.DISCONNECT)
    assert {first.type, last.type} == {reported} and {first.id, last.id} == {IDENT} and first.ip == "192.0.2.7"
    assert not first.HasField("reason") and (last.status_code, last.reason) == (130, "gone")
    assert first.timestamp.ToNanoseconds() <= last.timestamp.ToNanoseconds()


async def test_unknown_kinds_are_dropped() -> None:
    assert await sent_reports(ConnectionEvent(id=IDENT, connect=True, kind="speedtest")) == []


def test_queue_is_bounded() -> None:
    queue = ReportQueue()
    for _ in range(LIMIT + 5):
        queue.note(ConnectionEvent(id=IDENT, connect=True, kind="ssh"))
    assert len(queue) == LIMIT
