"""Messages between the supervisor and a process it forked: JSON lines over a socket pair.

The end of the pair's other side is a message as well: a process whose supervisor is gone stops.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import msgspec
import trio

from coder.coderd.services.foundation.this_process import Incident, Sibling

BEAT = 2.0
"""Seconds between two heartbeats of an event loop."""
MAX_LINE = 1 << 20
"""Bytes of a message. The rest of a longer one is dropped: the reader would hold and search it for ever."""
T = TypeVar("T")


class Report(msgspec.Struct, omit_defaults=True):
    """Message to the supervisor."""

    kind: str
    "ready, beat, failed, database"
    access_url: str = ""
    database_url: str = ""
    code: str = ""
    message: str = ""
    hint: str = ""


class Order(msgspec.Struct, omit_defaults=True):
    """Message to a process. Those of a supervisor of another release may have fields that this one does not know."""

    kind: str
    "siblings, stop, retire, ports"
    living: list[Sibling] = []
    lost: list[UUID] = []
    "Replicas."
    incidents: list[Incident] = []
    restarts: list[tuple[str, str, int]] = []


class ControlLink:
    """A process's end."""

    def __init__(self, control: socket.socket) -> None:
        control.setblocking(False)
        self._control = control
        self.stop_requested = trio.Event()
        self.retire_requested = trio.Event()
        """Set when a successor has started: finish the work, take no more, then stop."""
        self.ports_free = trio.Event()
        """Set when no former process holds the ports of this one's duties."""

    def send(self, report: Report) -> None:
        """Send without waiting. A supervisor that does not read for minutes misses heartbeats, which is harmless."""
        with contextlib.suppress(OSError):
            self._control.send(msgspec.json.encode(report) + b"\n")

    async def beat(self) -> None:
        """Show that the event loop turns, until cancelled."""
        while True:
            self.send(Report("beat"))
            await trio.sleep(BEAT)

    async def follow(self, apply: Callable[[Order], None]) -> None:
        """Apply orders until the supervisor is gone or orders to stop; then set `stop_requested`."""
        events = {"stop": self.stop_requested, "retire": self.retire_requested, "ports": self.ports_free}
        lines = LineBuffer()
        while True:
            await trio.lowlevel.wait_readable(self._control)
            try:
                data = self._control.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            for line in lines.add(data):
                order = read_line(line, Order)
                if order is None:
                    continue
                if order.kind in events:
                    events[order.kind].set()
                elif order.kind == "siblings":
                    apply(order)
            if not data:
                self.stop_requested.set()
                return


def read_line(line: bytes, kind: type[T]) -> T | None:
    """Return the message of a line; None for one of another release, or cut because its reader did not read."""
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


class LineBuffer:
    """Splits bytes into lines of at most `MAX_LINE` bytes."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_dropping = False

    def add(self, data: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines and self._is_dropping:
            self._is_dropping = False
            del lines[0]
        if len(self._rest) > MAX_LINE:
            self._rest, self._is_dropping = b"", True
        return lines
