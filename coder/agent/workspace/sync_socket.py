"""The agent's socket for the workspace's own scripts: `coder exp sync` asks here (docs/protocol/agent-socket.md).

A Unix socket in a directory of its own that only this user enters; one JSON line in, one out. A script may say and ask
everything here: it runs as the same user, in the same workspace.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import trio

from coder.agent.guarded import guarded
from coder.agent.upgrade.handover import KeptUnits
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.quoted import quoted
from coder.domain.agents.startup_units import StartupUnits, UnitError

log = get_logger("agent.sync")

MAX_LINE = 64 << 10
READ_TIMEOUT = 10.0
"Seconds for a request to arrive (ours)."


Tell = Callable[[Mapping[str, Any]], Awaitable[None]]
"""Raises CoderError when the server refuses it or is not there."""


class SyncSocket:
    """Serves the units of one agent process."""

    def __init__(self, path: Path | None = None, kept: KeptUnits | None = None, tell: Tell | None = None) -> None:
        """`tell` passes on what a program says of an app."""
        self._tell = tell
        self._units = StartupUnits()
        self._changed = trio.Event()
        self._kept = False
        if kept is not None:  # shells have been told this path
            self._units.resume(kept.status, kept.wanted)
            self.path = Path(kept.path)
            self._own_folder = self.path.parent if kept.owns_folder else None
            return
        self._own_folder = Path(tempfile.mkdtemp(prefix="coder-agent-")) if path is None else None
        self.path = path or Path(str(self._own_folder)) / "agent.sock"

    async def run(self) -> None:
        """Serves until cancelled. A socket that cannot be opened costs no workspace."""
        try:
            listener = self._open()
        except OSError as error:
            log.warn("the socket for scripts was not opened", path=str(self.path), error=error)
            self.forget()
            return
        try:
            await trio.serve_listeners(guarded(self._serve), [listener])
        finally:
            if not self._kept:
                self.path.unlink(missing_ok=True)
                self.forget()

    def let_go(self) -> None:
        """Path and folder stay for the next program of this process; `run` is to be cancelled."""
        self._kept = True

    def left(self) -> KeptUnits:
        """What that program goes on with."""
        return KeptUnits(str(self.path), self._own_folder is not None, *self._units.told())

    def forget(self) -> None:
        """Takes its own directory away."""
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _open(self) -> trio.SocketListener:
        _remove_dead(self.path)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # nobody else may connect, not even before a later chmod
        try:
            made.bind(str(self.path))
        finally:
            os.umask(before)
        made.listen(64)
        return trio.SocketListener(trio.socket.from_stdlib_socket(made))

    async def _serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                with trio.fail_after(READ_TIMEOUT):
                    line = await _read_line(stream)
                await stream.send_all(json.dumps(await self._answer(line)).encode() + b"\n")
            except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
                return

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            verb, unit = request["verb"], str(request.get("unit", ""))
            match verb:
                case "ping":
                    return {"pong": True}
                case "want":
                    for name in request["depends_on"]:
                        self._units.want(unit, str(name))
                    return {}
                case "start":
                    return await self._start(unit, float(request["timeout"]))
                case "complete":
                    self._units.complete(unit)
                    self._changed.set()
                    self._changed = trio.Event()
                    return {}
                case "status":
                    return self._status(unit)
                case "report" if self._tell is not None:
                    await self._tell(request)
                    return {}
                case "list":
                    return {"units": [self._row(name) for name in self._units.names()]}
        except (UnitError, CoderError) as error:
            return {"error": str(error)}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return {"error": "the request is none this agent knows"}
        return {"error": f"this agent knows no {quoted(verb)}"}

    async def _start(self, unit: str, timeout: float) -> dict[str, Any]:
        with trio.move_on_after(max(0.0, timeout)) as scope:
            while True:
                changed = self._changed
                if self._units.start(unit):
                    return {}
                await changed.wait()
        assert scope.cancelled_caught  # noqa: S101 - the loop has no other end
        missing = ", ".join(one.depends_on for one in self._units.dependencies(unit) if not one.satisfied)
        return {"error": f"unit {quoted(unit)} still waits for: {missing}"}

    def _status(self, unit: str) -> dict[str, Any]:
        return {
            **self._row(unit),
            "dependencies": [
                {
                    "depends_on": one.depends_on,
                    "required_status": one.required,
                    "current_status": one.current,
                    "satisfied": one.satisfied,
                }
                for one in self._units.dependencies(unit)
            ],
        }

    def _row(self, unit: str) -> dict[str, Any]:
        return {"unit": unit, "status": self._units.status(unit), "ready": self._units.is_ready(unit)}


def _remove_dead(path: Path) -> None:
    """Takes away what an agent that is gone left. Raises OSError when one answers there: it is not ours to take."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), str(path))


async def _read_line(stream: trio.SocketStream) -> bytes:
    """Up to the first line feed, or the end. Raises BrokenResourceError for one that is too long."""
    line = bytearray()
    while b"\n" not in line:
        chunk = await stream.receive_some(4096)
        if not chunk:
            break
        line += chunk
        if len(line) > MAX_LINE:
            raise trio.BrokenResourceError("the line is too long")
    return bytes(line.partition(b"\n")[0])
