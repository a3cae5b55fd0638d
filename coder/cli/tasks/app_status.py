"""How a task's app is, put together from what the model reports and what its AgentAPI shows: nothing is asked here.

AgentAPI is a program in front of a model's own: it sees when the screen comes to rest, and what a person says to it
(github.com/coder/agentapi, `GET /events`). A model forgets to report; a screen does not know what was done.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coder.base.errors import CoderError
from coder.cli.output import say

MAX_LINE = 4 << 20
"""Characters of a line of events: a message is one, as long as somebody wrote it (ours)."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the server is told."""

    state: str
    summary: str
    link: str


class AppStatus:
    """The state last told, and who told it."""

    def __init__(self) -> None:
        self._last = Report("", "", "")
        self._by_model = False
        self._heard = -1
        "Id of the last message of a person: a connection begins with all there were."

    def reported(self, report: Report) -> Report:
        """The model's own word, which always counts."""
        self._last, self._by_model = report, True
        return report

    def seen(self, event: str, data: Any) -> Report | None:
        """An event of AgentAPI; what is to be told for it, None for nothing."""
        if not isinstance(data, dict):
            return None
        if event == "status_change":
            return self._screen(str(data.get("status")))
        ident = data.get("id")
        if event == "message_update" and data.get("role") == "user" and isinstance(ident, int) and ident > self._heard:
            self._heard = ident
            return self._change("working")
        return None

    def _screen(self, status: str) -> Report | None:
        state = self._last.state
        if status == "stable" and state in {"", "working"}:
            return self._change("idle")  # it has stopped without a word
        # Whoever said it is done may still draw; only a person's word makes it work again.
        if status == "running" and (not state or (state == "idle" and not self._by_model)):
            return self._change("working")
        return None

    def _change(self, state: str) -> Report | None:
        if state == self._last.state:
            return None
        self._last, self._by_model = Report(state, self._last.summary, self._last.link), False
        return self._last


class Reporter:
    """Tells the server how the app is; one at a time, whoever asks."""

    def __init__(self, tell: Callable[[Report], object]) -> None:
        self._tell = tell
        self._status = AppStatus()
        self._lock = threading.Lock()

    def report(self, report: Report) -> None:
        """The model's own. Raises CoderError."""
        with self._lock:
            self._tell(self._status.reported(report))

    def seen(self, event: str, data: object) -> None:
        """What AgentAPI shows. Nobody waits for an answer, so a refusal goes to stderr."""
        with self._lock:
            report = self._status.seen(event, data)
            if report is not None:
                try:
                    self._tell(report)
                except CoderError as error:
                    say(f"AgentAPI's state was not told: {error}")


class EventStream:
    """Server-sent events (the HTML standard), as far as AgentAPI uses them: a name and a line of JSON."""

    def __init__(self) -> None:
        self._rest = b""
        self._name, self._data = "", ""

    def feed(self, chunk: bytes) -> list[tuple[str, Any]]:
        """The events completed by `chunk`. Raises ValueError for a line nobody sends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("a line of events has no end")
        found = []
        for line in lines:
            field, _, value = line.decode(errors="replace").rstrip("\r").partition(":")
            if field == "event":
                self._name = value.strip()
            elif field == "data":
                self._data += value.strip()
            elif not field and not value:
                if self._data:
                    found.append((self._name, json.loads(self._data)))
                self._name, self._data = "", ""
        return found
