"""Recent events of this agent and its machine, kept on disk and sent to the server after a reconnect.

Events are defined in `domain/agents/flight_events.py`, their meaning for the server in `domain/agents/disconnects.py`.
A recorder that cannot write (read-only home, full disk) continues in memory. When its disk does not answer, the
recorder still polls: only its own task waits, and neither joining nor shutdown waits for long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import trio

from coder.agent.disk import on_disk
from coder.agent.reports.flight_file import FlightFile
from coder.base.json_types import Json, JsonObject, as_list
from coder.base.log import get_logger
from coder.base.threads import NoThreadError
from coder.domain.agents.flight_events import Ended, FlightEvent, Sample, between, started
from coder.mesh.interfaces import local_addresses

log = get_logger("agent")

INTERVAL = 5.0
"""Seconds (ours) between polls; a suspension of ten seconds is always detected, one of five sometimes."""
MAX_EVENTS = 200
"Events (ours) that wait for the server; the server accepts no more at a time."
CLOSE_TIMEOUT = 2.0
"Seconds (ours) that a shutdown waits for the record to be written."
_MAX_ADDRESSES = 16
_EXPLANATION_WINDOW = 90.0
"""Seconds during which an event of the machine may still explain a disconnect. Neither side notices a broken path
before a ping goes unanswered, and a machine that moved reports it over its new path meanwhile."""
_MACHINE_EVENTS = frozenset({"stood_still", "clock_jumped", "network_changed"})
_MOVES = frozenset({"stood_still", "network_changed"})
"Events that connections may not survive."


class FlightRecorder:
    """Recorder for the life of the process."""

    def __init__(self, folder: Path | None, read_state: Callable[[], Sample] | None = None) -> None:
        self._folder = folder
        self._read_state = read_state or read_machine
        self._last = self._read_state()
        self._file: FlightFile | None = None
        self._name = ""
        self._named = trio.Event()
        self.opened = trio.Event()
        "Set when the previous process's record, if any, is among the events."
        self._events: list[FlightEvent] = []
        self._ended: Ended = "died"
        "State in which this process ended, unless a later write changes it."
        self._changed = trio.Event()
        self.moves = 0
        "Number of times the machine's addresses have changed or it was suspended."
        self.last_move = ""
        "Kind of the latest of these events."
        self._moved = trio.Event()
        self._detected_at: dict[int, tuple[float, int]] = {}
        """id of an event of the machine -> time of its detection, on the clock that is never set, and the number of the
        move."""
        self._writing = trio.Lock()
        self._thread = trio.CapacityLimiter(1)
        "Thread of its own: no other disk access of the agent waits for the record."

    # ---- writing

    def note(self, kind: str, **data: str | float | bool) -> None:
        """Record an event."""
        self._poll()
        self._set_events([*self._events, FlightEvent(self._last.wall, kind, dict(data))])
        self._changed.set()

    def _poll(self) -> None:
        """Read the machine's state and record the changes since the last poll."""
        now = self._read_state()
        for event in between(self._last, now, INTERVAL):
            log.info("recorded", what=event.kind, **event.data)
            self._events.append(event)
            if event.kind in _MOVES:
                self.moves += 1
                self.last_move = event.kind
                self._moved.set()
                self._moved = trio.Event()
            self._detected_at[id(event)] = (now.running, self.moves)
        self._last = now
        self._set_events(self._events)

    def _set_events(self, events: list[FlightEvent]) -> None:
        self._events = events[-MAX_EVENTS:]
        kept = {id(event) for event in self._events}
        self._detected_at = {ident: at for ident, at in self._detected_at.items() if ident in kept}

    async def wait_moved(self, since: int) -> int:
        """Wait until the machine has moved more than `since` times; return the number of moves."""
        while self.moves <= since:
            await self._moved.wait()
        return self.moves

    def mark_survived(self, since: int, until: int) -> None:
        """Mark moves as survived: a connection from before the moves after `since` was answered after move `until`, so
        none of them explains a later disconnect."""
        for event in self._events:
            if event.kind in _MOVES and since < self._detected_at.get(id(event), (0.0, since))[1] <= until:
                event.data["survived"] = True
        self._changed.set()

    def name(self, name: str) -> None:
        """Set the agent's name: `run` reads the previous process's record under it. Later calls do nothing."""
        if not self._named.is_set():
            self._name = name
            self._named.set()

    async def open(self) -> None:
        """Read the record once the name is set. Waits for the disk."""
        await self._named.wait()
        record: JsonObject = {}
        if self._folder is not None:
            path = self._folder / f"{self._name}.flight"
            try:
                self._file, record = await on_disk(_open_file, path, limiter=self._thread)
            except OSError as error:
                log.warn("the flight record of the previous process cannot be read", error=error)
        old = [event for event in map(_event_untrusted, as_list(record.get("events"))) if event is not None]
        first = started(_look_untrusted(record.get("last")), self._read_state(), _ended_untrusted(record))
        self._set_events([*old, first, *self._events])
        self.opened.set()
        await self._write()

    async def run(self) -> None:
        """Poll forever and write the changes."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_changes)
            while True:
                await trio.sleep(INTERVAL)
                self._poll()
                self._changed.set()

    async def _write_changes(self) -> None:
        await self.open()
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            await self._write()

    async def stop(self, ended: Literal["stopped", "upgraded"] = "stopped") -> None:
        """Record that the process shuts down in an orderly way, or continues as another program."""
        self._ended = ended
        self.note(ended)
        with trio.move_on_after(CLOSE_TIMEOUT):
            await self._write()
            async with self._writing:  # `run` is notified of the event, too
                file, self._file = self._file, None
                if file is not None:
                    await self._close(file)

    async def _close(self, file: FlightFile) -> None:
        with suppress(OSError):  # no free thread; the file closes with the process
            await on_disk(file.close, limiter=self._thread)

    async def _write(self) -> None:
        async with self._writing:
            if self._file is not None:
                await self._write_to(self._file)

    async def _write_to(self, file: FlightFile) -> None:
        document: JsonObject = {
            "last": asdict(self._last),
            "stopped": self._ended == "stopped",
            "ended": self._ended,
            "events": [asdict(event) for event in self._events],
        }
        try:
            await on_disk(file.write, document, limiter=self._thread)
        except NoThreadError:
            return  # the next event writes it
        except OSError as error:
            log.warn("the flight recorder continues in memory only", error=error)
            self._file = None
            await self._close(file)

    # ---- sending

    def unsent(self) -> list[FlightEvent]:
        """Return the events that the server has not confirmed."""
        self._poll()
        return list(self._events)

    def mark_sent(self, events: list[FlightEvent]) -> None:
        """Drop the events that the server confirmed. Events that may explain an undetected disconnect are sent again
        with it."""
        known = {id(event) for event in events}
        self._set_events([event for event in self._events if id(event) not in known or self._may_explain(event)])
        self._changed.set()

    def _may_explain(self, event: FlightEvent) -> bool:
        if event.kind not in _MACHINE_EVENTS or "survived" in event.data:
            return False
        detected_at, _ = self._detected_at.get(id(event), (-math.inf, 0))
        return self._last.running - detected_at < _EXPLANATION_WINDOW


def _open_file(path: Path) -> tuple[FlightFile | None, JsonObject]:
    file = None
    try:
        file = FlightFile.open_file(path)
        return file, file.read()
    except OSError as error:
        if file is not None:
            file.close()
        log.warn("the flight record cannot be written to disk", folder=path.parent, error=error)
        return None, {}


def read_machine() -> Sample:
    """Return the current state of the machine."""
    return Sample(
        wall=time.time(),
        running=_running(),
        awake=time.monotonic(),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        oom_kills=_oom_kills(),
        addresses=_addresses(),
    )


def _running() -> float:
    """Return a clock that counts suspended time. macOS' monotonic clock does not, its CLOCK_MONOTONIC does; Windows'
    monotonic clock does."""
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


def _addresses() -> tuple[str, ...]:
    record = [ip for ip in local_addresses() if not ip.startswith("127.") and ip != "::1"]
    return tuple(sorted(record)[:_MAX_ADDRESSES])


def _oom_kills() -> int | None:
    for line in _text("/proc/vmstat").splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _look_untrusted(value: Json) -> Sample | None:
    if not isinstance(value, dict):
        return None
    try:
        kills = value["oom_kills"]
        return Sample(
            _number(value["wall"]),
            _number(value["running"]),
            _number(value["awake"]),
            str(value["boot_id"]),
            None if kills is None else int(_number(kills)),
            tuple(str(address) for address in as_list(value["addresses"])),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _number(value: Json) -> float:
    if not isinstance(value, int | float | str):
        raise TypeError("a number is required")
    return float(value)


def _ended_untrusted(record: JsonObject) -> Ended:
    if record.get("stopped") is True:  # the format of earlier programs
        return "stopped"
    return "upgraded" if record.get("ended") == "upgraded" else "died"


def _event_untrusted(value: Json) -> FlightEvent | None:
    try:
        if not isinstance(value, dict) or not isinstance(value["data"], dict):
            return None
        return FlightEvent(_number(value["at"]), str(value["kind"]), value["data"])
    except (KeyError, TypeError, ValueError):
        return None
