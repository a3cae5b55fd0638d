"""Status of a task's app, computed from the model's reports and its AgentAPI's events, without requests.

AgentAPI wraps a model's program: it detects when the screen is idle, and sees the user's messages
(github.com/coder/agentapi, `GET /events`). A model can forget to report; a screen does not show what was done.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass

from coder.base.errors import CoderError
from coder.base.json_types import Json
from coder.cli.ui.output import say

MAX_LINE = 4 << 20
"""Maximum characters of an event line (our choice): a line contains a whole message of any length."""


@dataclass(frozen=True, slots=True)
class Report:
    """Status report for the server."""

    state: str
    summary: str
    link: str


class AppStatus:
    """State of the last report and its source."""

    def __init__(self) -> None:
        self._last = Report("", "", "")
        self._is_model_report = False
        self._last_message = -1
        "Id of the user's last message: a connection starts by repeating all messages."

    def reported(self, report: Report) -> Report:
        """Return the report of the model itself, which always counts."""
        self._last, self._is_model_report = report, True
        return report

    def seen(self, event: str, data: Json) -> Report | None:
        """Process an event of AgentAPI; return the report to send, or None."""
        if not isinstance(data, dict):
            return None
        if event == "status_change":
            return self._agentapi_event(str(data.get("status")))
        ident = data.get("id")
        if (
            event == "message_update"
            and data.get("role") == "user"
            and isinstance(ident, int)
            and ident > self._last_message
        ):
            self._last_message = ident
            return self._change("working")
        return None

    def _agentapi_event(self, status: str) -> Report | None:
        state = self._last.state
        if status == "stable" and state in {"", "working"}:
            return self._change("idle")  # it stopped without a report
        # A model that reported completion can still draw; only a user's message sets it to working again.
        if status == "running" and (not state or (state == "idle" and not self._is_model_report)):
            return self._change("working")
        return None

    def _change(self, state: str) -> Report | None:
        if state == self._last.state:
            return None
        self._last, self._is_model_report = Report(state, self._last.summary, self._last.link), False
        return self._last


class AppStatusReporter:
    """Reporter of the app's status to the server; sends one report at a time."""

    def __init__(self, tell: Callable[[Report], object]) -> None:
        self._tell = tell
        self._status = AppStatus()
        self._lock = threading.Lock()

    def report(self, report: Report) -> None:
        """Send the model's own report. Raise CoderError."""
        with self._lock:
            self._tell(self._status.reported(report))

    def seen(self, event: str, data: Json) -> None:
        """Send a report for AgentAPI's state. It has no caller to inform, so an error is printed to stderr."""
        with self._lock:
            report = self._status.seen(event, data)
            if report is not None:
                try:
                    self._tell(report)
                except CoderError as error:
                    say(f"AgentAPI's state was not reported: {error}")


class EventStream:
    """Parser of server-sent events (HTML standard) in AgentAPI's subset: a name and a line of JSON."""

    def __init__(self) -> None:
        self._rest = b""
        self._name, self._data = "", ""

    def feed(self, chunk: bytes) -> list[tuple[str, Json]]:
        """Return the events completed by `chunk`. Raise ValueError for a line over the limit."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("an event line is too long")
        events = []
        for line in lines:
            field, _, value = line.decode(errors="replace").rstrip("\r").partition(":")
            if field == "event":
                self._name = value.strip()
            elif field == "data":
                self._data += value.strip()
            elif not field and not value:
                if self._data:
                    events.append((self._name, json.loads(self._data)))
                self._name, self._data = "", ""
        return events
