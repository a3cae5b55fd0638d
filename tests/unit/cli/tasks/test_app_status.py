"""Status of a task's app, from the model's reports and its AgentAPI's events."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from coder.base.errors import CoderError
from coder.cli.tasks import agentapi
from coder.cli.tasks.app_status import MAX_LINE, AppStatus, AppStatusReporter, EventStream, Report
from coder.net.policy import DialPolicy
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply

WORKING, IDLE, DONE = (Report(state, "s", "l") for state in ("working", "idle", "complete"))
STABLE, RUNNING = ("status_change", {"status": "stable"}), ("status_change", {"status": "running"})


def person(ident: int) -> tuple[str, Any]:
    return "message_update", {"id": ident, "role": "user", "message": "more"}


@pytest.mark.parametrize(
    ("before", "events", "reports"),
    [
        ([], [RUNNING, STABLE], ["working", "idle"]),
        ([], [STABLE, RUNNING, RUNNING, STABLE], ["idle", "working", "idle"]),
        ([WORKING], [RUNNING, STABLE, STABLE], ["idle"]),  # it forgot to report that it waits
        ([DONE], [RUNNING, STABLE], []),  # its last redraw is not work
        ([IDLE], [RUNNING], []),
        ([DONE], [person(3), STABLE], ["working", "idle"]),
        ([], [person(0), person(0), STABLE, person(0), person(1)], ["working", "idle", "working"]),
        ([], [("message_update", {"id": 0, "role": "agent"}), ("other", {}), ("status_change", [])], []),
        ([], [("message_update", {"id": "x", "role": "user"}), ("status_change", {})], []),
    ],
)
def test_reported_states(before: list[Report], events: list[tuple[str, Any]], reports: list[str]) -> None:
    status = AppStatus()
    for report in before:
        assert status.reported(report) is report
    results = [one for event in events if (one := status.seen(*event)) is not None]
    assert [item.state for item in results] == reports
    assert all((item.summary, item.link) == (("s", "l") if before else ("", "")) for item in results)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_split_anywhere(size: int) -> None:
    text = b': hi\r\nevent: a\r\ndata: {"x":\r\ndata: 1}\r\n\r\nevent: b\ndata: [2]\n\nevent: c\n\ndata: 3'
    stream, events = EventStream(), []
    for start in range(0, len(text), size):
        events += stream.feed(text[start : start + size])
    assert events == [("a", {"x": 1}), ("b", [2])]
    with pytest.raises(ValueError, match="too long"):
        stream.feed(b"x" * (MAX_LINE + 1))
    with pytest.raises(ValueError, match="Expecting"):
        EventStream().feed(b"data: {\n\n")


def events(*pairs: tuple[str, Any]) -> str:
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in pairs)


async def test_agentapi_is_retried(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(agentapi, "AGAIN", 0.0)
    answers = iter(
        [
            reply("", status="503 Service Unavailable"),
            b"",
            reply(events(person(0), STABLE), kind="text/event-stream"),
            reply("data: {\n\n"),
            reply(events(person(0), STABLE, person(1)), kind="text/event-stream"),
        ]
    )
    reports: list[str] = []
    done = trio.Event()
    token = trio.lowlevel.current_trio_token()

    def send_event(report: Report) -> None:
        reports.append(report.state)
        if len(reports) == 2:
            raise CoderError("x", "not now")
        if len(reports) == 3:
            trio.from_thread.run_sync(done.set, trio_token=token)

    with odd_server() as server:
        server.answer = lambda _method, _path: next(answers, b"")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agentapi._watch, DialPolicy(server.url), AppStatusReporter(send_event))
            with trio.fail_after(60):
                await done.wait()
            nursery.cancel_scope.cancel()
    assert reports == ["working", "idle", "working"]
    assert set(server.asked) == {("GET", "/events")}
    output = capsys.readouterr().err
    assert output.count("AgentAPI is not reachable (it answers /events with 503)") == 1
    assert "AgentAPI's state was not reported: not now" in output
