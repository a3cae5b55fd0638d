"""What happened lately to this agent and its machine, kept on disk and told to the server when we are back.

What counts as an event is `domain/agents/flight_events.py`, what the server makes of it `domain/agents/disconnects.py`.
A recorder that cannot write (read-only home, full disk) goes on in memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import trio

from coder.agent.reports.flight_file import FlightFile
from coder.base.log import get_logger
from coder.domain.agents.flight_events import Ended, FlightEvent, Look, between, started
from coder.mesh.interfaces import local_addresses

log = get_logger("agent")

INTERVAL = 5.0
"""Ours: seconds between looks; a stop of fifteen is noticed and one of ten may be."""
KEPT = 200
"Ours: events that wait for the server; the server takes no more at once."
_MOST_ADDRESSES = 16
_EXPLAINS = 90.0
"""Seconds for which what happened to the machine may still explain a disconnect. Neither side notices a broken path
before a ping goes unanswered, and a machine that moved tells of it over its new one meanwhile."""
_OF_THE_MACHINE = frozenset({"stood_still", "clock_jumped", "network_changed"})


class FlightRecorder:
    """One for the life of the process."""

    def __init__(self, folder: Path | None, look: Callable[[], Look] | None = None) -> None:
        self._folder = folder
        self._look = look or look_around
        self._last = self._look()
        self._file: FlightFile | None = None
        self._opened = False
        self._events: list[FlightEvent] = []
        self._ended: Ended = "died"
        "How this process will have ended, when nothing more is written."
        self._changed = trio.Event()
        self._moved = trio.Event()
        self._found_at: dict[int, float] = {}
        "id of an event of the machine -> when it was found, on the clock that is never set."
        self._writing = trio.Lock()

    # ---- writing

    def note(self, kind: str, **data: str | float | bool) -> None:
        """Something happened."""
        self._check()
        self._keep([*self._events, FlightEvent(self._last.wall, kind, dict(data))])
        self._changed.set()

    def _check(self) -> None:
        """Looks around, and finds what happened since the last look."""
        now = self._look()
        for event in between(self._last, now, INTERVAL):
            log.info("recorded", what=event.kind, **event.data)
            self._events.append(event)
            self._found_at[id(event)] = now.running
            if event.kind == "network_changed":
                self._moved.set()
        self._last = now
        self._keep(self._events)

    def _keep(self, events: list[FlightEvent]) -> None:
        self._events = events[-KEPT:]
        kept = {id(event) for event in self._events}
        self._found_at = {ident: at for ident, at in self._found_at.items() if ident in kept}

    async def wait_moved(self) -> None:
        """Until the machine's addresses have changed."""
        self._moved = trio.Event()
        await self._moved.wait()

    async def open(self, name: str) -> None:
        """Called when the agent has heard who it is; finds what the process before wrote under the same name."""
        if self._opened:
            return
        self._opened = True
        record = await trio.to_thread.run_sync(self._open_file, name)
        old = [event for event in map(_event_untrusted, record.get("events") or ()) if event is not None]
        last = _look_untrusted(record.get("last"))
        first = started(last, self._look(), _ended_untrusted(record))
        self._keep([*old, first, *self._events])
        await self._write()

    def _open_file(self, name: str) -> dict[str, Any]:
        if self._folder is None:
            return {}
        try:
            self._file = FlightFile.open_file(self._folder / f"{name}.flight")
            return self._file.read()
        except OSError as error:
            log.warn("what happens to this agent cannot be recorded on disk", folder=self._folder, error=error)
            return {}

    async def run(self) -> None:
        """Looks around for ever, and writes what is new."""
        due = trio.current_time() + INTERVAL
        while True:
            with trio.move_on_at(due):
                await self._changed.wait()
            self._changed = trio.Event()
            if trio.current_time() >= due:
                self._check()
                due = trio.current_time() + INTERVAL
            await self._write()

    async def stop(self, ended: Literal["stopped", "upgraded"] = "stopped") -> None:
        """The process ends as it should, or goes on as another program."""
        self._ended = ended
        self.note(ended)
        await self._write()
        async with self._writing:  # `run` heard of the note, too
            if self._file is not None:
                self._file.close()
                self._file = None

    async def _write(self) -> None:
        async with self._writing:
            if self._file is not None:
                await self._write_to(self._file)

    async def _write_to(self, file: FlightFile) -> None:
        document = {
            "last": asdict(self._last),
            "stopped": self._ended == "stopped",
            "ended": self._ended,
            "events": [asdict(event) for event in self._events],
        }
        try:
            await trio.to_thread.run_sync(file.write, document)
        except OSError as error:
            log.warn("what happens to this agent is recorded in memory only", error=error)
            file.close()
            self._file = None

    # ---- telling

    def waiting(self) -> list[FlightEvent]:
        """What the server has not been told."""
        self._check()
        return list(self._events)

    def told(self, events: list[FlightEvent]) -> None:
        """The server has these; what may explain a disconnect that nobody has noticed yet is told again with it."""
        known = {id(event) for event in events}
        self._keep([event for event in self._events if id(event) not in known or self._may_explain(event)])
        self._changed.set()

    def _may_explain(self, event: FlightEvent) -> bool:
        if event.kind not in _OF_THE_MACHINE:
            return False
        return self._last.running - self._found_at.get(id(event), -math.inf) < _EXPLAINS


def look_around() -> Look:
    """The machine now."""
    return Look(
        wall=time.time(),
        running=_running(),
        awake=time.monotonic(),
        boot_id=_text("/proc/sys/kernel/random/boot_id"),
        oom_kills=_oom_kills(),
        addresses=_addresses(),
    )


def _running() -> float:
    """macOS' monotonic clock is the one that counts no sleep, its CLOCK_MONOTONIC does; Windows' counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
    return time.clock_gettime(clock) if clock is not None else time.monotonic()


def _addresses() -> tuple[str, ...]:
    found = [ip for ip in local_addresses() if not ip.startswith("127.") and ip != "::1"]
    return tuple(sorted(found)[:_MOST_ADDRESSES])


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


def default_folder(environ: Mapping[str, str]) -> Path:
    """Where programs of a user keep what should outlive them (XDG base directories)."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    home = Path(environ.get("HOME") or "~").expanduser()
    return (state if state.is_absolute() else home / ".local" / "state") / "coder-agent"


def _look_untrusted(value: object) -> Look | None:
    if not isinstance(value, dict):
        return None
    try:
        found = Look(**{field.name: value[field.name] for field in fields(Look)})
        return Look(
            float(found.wall),
            float(found.running),
            float(found.awake),
            str(found.boot_id),
            None if found.oom_kills is None else int(found.oom_kills),
            tuple(str(address) for address in found.addresses),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _ended_untrusted(record: dict[str, Any]) -> Ended:
    if record.get("stopped") is True:  # all that earlier programs wrote
        return "stopped"
    return "upgraded" if record.get("ended") == "upgraded" else "died"


def _event_untrusted(value: object) -> FlightEvent | None:
    try:
        return FlightEvent(float(value["at"]), str(value["kind"]), dict(value["data"]))  # type: ignore[index]
    except (KeyError, TypeError, ValueError):
        return None
