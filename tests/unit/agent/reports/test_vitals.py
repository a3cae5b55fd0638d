"""Readings of an agent's machine: values, odd output of the system, and the body of a report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import trio
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import StringValue

from coder.agent.reports import vitals
from coder.agent.reports.flight_recorder import FlightRecorder
from coder.agent.reports.vitals import pressure, read_host, report, uptime
from coder.agent.reports.volumes import read_volumes
from coder.api.agents.agent_health import AgentVitals
from coder.domain.agents.flight_events import FlightEvent, Sample
from coder.net.policy import DialPolicy
from coder.rpc.errors import INVALID_ARGUMENT, RpcError, unimplemented

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("some avg10=1.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.50 avg60=0 avg300=0 total=0\n", 1.5),
        ("full avg10=0.50\n", None),
        ("some avg10=much\n", None),
        ("", None),
    ],
)
def test_memory_pressure(text: str, expected: float | None) -> None:
    assert pressure(text) == expected


def test_time_since_boot() -> None:
    assert uptime("350735.47 234388.90\n") == 350735.47
    assert uptime("") is None and uptime("x y") is None


class Server:
    """Session and route of a server; counts how reports arrive."""

    def __init__(self, call_error: RpcError | None, route_status: int) -> None:
        self.call_error, self.route_status = call_error, route_status
        self.arrived: list[str] = []

    async def call(self, name: str, request: StringValue, _reply: type[Message]) -> None:
        await trio.lowlevel.checkpoint()
        assert name.endswith("/ReportVitals") and json.loads(request.value)["cores"]
        self.arrived.append("call")
        if self.call_error is not None:
            raise self.call_error

    async def post(self, _policy: DialPolicy, body: dict[str, Any]) -> int:
        await trio.lowlevel.checkpoint()
        assert body["cores"]
        self.arrived.append("route")
        return self.route_status


UNKNOWN_CALL = RpcError(0, 'protocol error: unknown rpc: "/coder.reports.v1.AgentReports/ReportVitals"')


@pytest.mark.parametrize(
    ("error", "status", "arrived", "confirmed"),
    [
        (None, 204, ["call", "call", "call"], True),
        (UNKNOWN_CALL, 204, ["call", "route", "route", "route"], True),
        (unimplemented(), 404, ["call", "route"], False),
        (RpcError(0, "internal error"), 204, ["call", "call", "call"], False),
        (RpcError(INVALID_ARGUMENT, "Unknown kind of event."), 204, ["call", "call", "call"], True),
    ],
)
async def test_report_uses_known_way(
    error: RpcError | None,
    status: int,
    arrived: list[str],
    confirmed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server: Any = Server(error, status)
    monkeypatch.setattr(vitals, "_send", server.post)
    monkeypatch.setattr(vitals, "VITALS_INTERVAL", 0.01)
    recorder = FlightRecorder(None, lambda: Sample(1e6, 100.0, 100.0, "boot", 0, ("10.0.0.1",)))
    recorder.note("connected")
    network: Any = SimpleNamespace(peers_in_use=lambda _seconds: {"direct": 0, "relayed": 0})
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:

            async def report_while_known() -> None:
                await vitals.report_loop(server, DialPolicy("http://127.0.0.1:1"), recorder, network, tmp_path)
                nursery.cancel_scope.cancel()

            nursery.start_soon(report_while_known)
            while len(server.arrived) <= len(arrived):
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel()
    assert server.arrived[: len(arrived)] == arrived
    assert set(server.arrived[len(arrived) :]) <= {arrived[-1]}
    assert (recorder.unsent() == []) is confirmed


async def test_report_matches_server_schema(tmp_path: Path) -> None:
    events = [FlightEvent(at, "started", {"previous": "died", "same_boot": True}) for at in (1e9, 1e300)]
    body = report(read_host((await read_volumes([tmp_path]))[tmp_path]) | {"direct": 1, "relayed": 0}, events, NOW)
    read = msgspec.json.decode(msgspec.json.encode(body), type=AgentVitals)
    assert read.sent_at == NOW and read.disk_total and read.cores
    assert [event.at.year for event in read.events] == [2001, 1970], "an invalid time becomes the epoch"
