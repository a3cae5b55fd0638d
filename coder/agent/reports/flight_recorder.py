"""What happened lately to this agent and its machine, kept on disk and told to the server when we are back.

What counts as an event is `domain/agents/flight_events.py`, what the server makes of it `domain/agents/disconnects.py`.
A recorder that cannot write (read-only home, full disk) goes on in memory. One whose disk does not answer looks around
all the same: only its own task waits, and neither joining nor the agent's end does for long.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import trio

from coder.agent.disk import on_disk
from coder.agent.reports.flight_file import FlightFile
from coder.base.log import get_logger
from coder.base.threads import NoThreadError
from coder.domain.agents.flight_events import Ended, FlightEvent, Look, between, started
from coder.mesh.interfaces import local_addresses

log = get_logger("agent")

INTERVAL = 5.0
"""Ours: seconds between looks; a stop of fifteen is noticed and one of ten may be."""
KEPT = 200
"Ours: events that wait for the server; the server takes no more at once."
LAST_WORDS = 2.0
"Ours: seconds that the end of a process waits for its record to be written."
_MOST_ADDRESSES = 16
_EXPLAINS = 90.0
"""Seconds for which what happened to the machine may still explain a disconnect. Neither side notices a broken path
before a ping goes unanswered, and a machine that moved tells of it over its new one meanwhile."""
_OF_THE_MACHINE = frozenset({"stood_still", "clock_jumped", "network_changed"})
_MOVES = frozenset({"stood_still", "network_changed"})
"What connections may not survive."


class FlightRecorder:
    """One for the life of the process."""

    def __init__(self, folder: Path | None, look: Callable[[], Look] | None = None) -> None:
        self._folder = folder
        self._look = look or look_around
        self._last = self._look()
        self._file: FlightFile | None = None
        self._name = ""
        self._named = trio.Event()
        self.opened = trio.Event()
        "What the process before wrote is among the events, if there is anything."
        self._events: list[FlightEvent] = []
        self._ended: Ended = "died"
        "How this process will have ended, when nothing more is written."
        self._changed = trio.Event()
        self.moves = 0
        "How often the machine's addresses have changed, or it stood still."
        self.last_move = ""
        "The kind of the last of these events."
        self._moved = trio.Event()
        self._found_at: dict[int, tuple[float, int]] = {}
        "id of an event of the machine -> when it was found, on the clock that is never set, and which move it was."
        self._writing = trio.Lock()
        self._thread = trio.CapacityLimiter(1)
        "Not one of the agent's other looks at disks waits for this one."

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
            if event.kind in _MOVES:
                self.moves += 1
                self.last_move = event.kind
                self._moved.set()
                self._moved = trio.Event()
            self._found_at[id(event)] = (now.running, self.moves)
        self._last = now
        self._keep(self._events)

    def _keep(self, events: list[FlightEvent]) -> None:
        self._events = events[-KEPT:]
        kept = {id(event) for event in self._events}
        self._found_at = {ident: at for ident, at in self._found_at.items() if ident in kept}

    async def wait_moved(self, since: int) -> int:
        """Until the machine has moved more than `since` times; how often by then."""
        while self.moves <= since:
            await self._moved.wait()
        return self.moves

    def survived(self, since: int, until: int) -> None:
        """A connection from before the moves after `since` was answered after the one numbered `until`: none of them
        explains a disconnect of later."""
        for event in self._events:
            if event.kind in _MOVES and since < self._found_at.get(id(event), (0.0, since))[1] <= until:
                event.data["survived"] = True
        self._changed.set()

    def name(self, name: str) -> None:
        """The agent has heard who it is: `run` looks for what the process before wrote under this name. Once."""
        if not self._named.is_set():
            self._name = name
            self._named.set()

    async def open(self) -> None:
        """Finds what is there once there is a name. Waits for the disk."""
        await self._named.wait()
        found: dict[str, Any] = {}
        if self._folder is not None:
            path = self._folder / f"{self._name}.flight"
            try:
                self._file, found = await on_disk(_open_file, path, limiter=self._thread)
            except OSError as error:
                log.warn("what happened to the agent before is not known", error=error)
        old = [event for event in map(_event_untrusted, found.get("events") or ()) if event is not None]
        first = started(_look_untrusted(found.get("last")), self._look(), _ended_untrusted(found))
        self._keep([*old, first, *self._events])
        self.opened.set()
        await self._write()

    async def run(self) -> None:
        """Looks around for ever, and has written what is new."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_changes)
            while True:
                await trio.sleep(INTERVAL)
                self._check()
                self._changed.set()

    async def _write_changes(self) -> None:
        await self.open()
        while True:
            await self._changed.wait()
            self._changed = trio.Event()
            await self._write()

    async def stop(self, ended: Literal["stopped", "upgraded"] = "stopped") -> None:
        """The process ends as it should, or goes on as another program."""
        self._ended = ended
        self.note(ended)
        with trio.move_on_after(LAST_WORDS):
            await self._write()
            async with self._writing:  # `run` heard of the note, too
                file, self._file = self._file, None
                if file is not None:
                    await self._close(file)

    async def _close(self, file: FlightFile) -> None:
        with suppress(OSError):  # no room for a thread; the file goes with the process
            await on_disk(file.close, limiter=self._thread)

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
            await on_disk(file.write, document, limiter=self._thread)
        except NoThreadError:
            return  # it is written with what happens next
        except OSError as error:
            log.warn("what happens to this agent is recorded in memory only", error=error)
            self._file = None
            await self._close(file)

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
        if event.kind not in _OF_THE_MACHINE or "survived" in event.data:
            return False
        found_at, _ = self._found_at.get(id(event), (-math.inf, 0))
        return self._last.running - found_at < _EXPLAINS


def _open_file(path: Path) -> tuple[FlightFile | None, dict[str, Any]]:
    file = None
    try:
        file = FlightFile.open_file(path)
        return file, file.read()
    except OSError as error:
        if file is not None:
            file.close()
        log.warn("what happens to this agent cannot be recorded on disk", folder=path.parent, error=error)
        return None, {}


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
