"""Socket of the agent for the workspace's own scripts, used by `coder exp sync` (docs/protocol/agent-socket.md).

A Unix socket in a directory that only this user can enter; one JSON line in, one out. A script may make every request
here: it runs as the same user, in the same workspace.
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

import trio

from coder.agent.failure_isolation import isolate_failures
from coder.agent.upgrade.handover import KeptUnits
from coder.base.errors import CoderError
from coder.base.json_types import Json, JsonObject
from coder.base.log import get_logger
from coder.base.quoted import quoted
from coder.domain.agents.startup_units import StartupUnits, UnitError

log = get_logger("agent.sync")

MAX_LINE = 64 << 10
READ_TIMEOUT = 10.0
"Seconds for a request to arrive (ours)."


Report = Callable[[Mapping[str, Json]], Awaitable[None]]
"""Raises CoderError when the server rejects the status or is not reachable."""


class SyncSocket:
    """Socket server for the startup units of one agent process."""

    def __init__(self, path: Path | None = None, kept: KeptUnits | None = None, report: Report | None = None) -> None:
        """`report` forwards a program's app status."""
        self._report = report
        self._units = StartupUnits()
        self._changed = trio.Event()
        self._kept = False
        if kept is not None:  # running shells already have this path
            self._units.resume(kept.status, kept.wanted)
            self.path = Path(kept.path)
            self._own_folder = self.path.parent if kept.owns_folder else None
            return
        self._own_folder = Path(tempfile.mkdtemp(prefix="coder-agent-")) if path is None else None
        self.path = path or Path(str(self._own_folder)) / "agent.sock"

    async def run(self) -> None:
        """Serve until cancelled. A socket that cannot be opened does not stop the agent."""
        try:
            listener = self._open()
        except OSError as error:
            log.warn("the socket for scripts was not opened", path=str(self.path), error=error)
            self.remove_folder()
            return
        try:
            await trio.serve_listeners(isolate_failures(self._serve), [listener])
        finally:
            if not self._kept:
                self.path.unlink(missing_ok=True)
                self.remove_folder()

    def release(self) -> None:
        """Keep path and folder for the next program of this process; cancel `run` afterwards."""
        self._kept = True

    def handover_state(self) -> KeptUnits:
        """Return the state that the next program continues with."""
        return KeptUnits(str(self.path), self._own_folder is not None, *self._units.snapshot())

    def remove_folder(self) -> None:
        """Remove the socket's own directory."""
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    def _open(self) -> trio.SocketListener:
        _remove_stale(self.path)
        listener_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # other users must not connect, not even before a later chmod
        try:
            listener_socket.bind(str(self.path))
        finally:
            os.umask(before)
        listener_socket.listen(64)
        return trio.SocketListener(trio.socket.from_stdlib_socket(listener_socket))

    async def _serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            try:
                with trio.fail_after(READ_TIMEOUT):
                    line = await _read_line(stream)
                await stream.send_all(json.dumps(await self._answer(line)).encode() + b"\n")
            except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
                return

    async def _answer(self, line: bytes) -> JsonObject:
        try:
            request = json.loads(line)
            verb, unit = request["verb"], str(request.get("unit", ""))
            match verb:
                case "ping":
                    return {"pong": True}
                case "want":
                    for name in request["depends_on"]:
                        self._units.add_dependency(unit, str(name))
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
                case "report" if self._report is not None:
                    await self._report(request)
                    return {}
                case "list":
                    return {"units": [self._row(name) for name in self._units.names()]}
        except (UnitError, CoderError) as error:
            return {"error": str(error)}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return {"error": "the request is invalid"}
        return {"error": f"this agent does not know {quoted(verb)}"}

    async def _start(self, unit: str, timeout: float) -> JsonObject:
        with trio.move_on_after(max(0.0, timeout)) as scope:
            while True:
                changed = self._changed
                if self._units.start(unit):
                    return {}
                await changed.wait()
        assert scope.cancelled_caught  # noqa: S101 - the loop has no other end
        missing = ", ".join(
            dependency.depends_on for dependency in self._units.dependencies(unit) if not dependency.satisfied
        )
        return {"error": f"unit {quoted(unit)} is still waiting for: {missing}"}

    def _status(self, unit: str) -> JsonObject:
        return {
            **self._row(unit),
            "dependencies": [
                {
                    "depends_on": dependency.depends_on,
                    "required_status": dependency.required,
                    "current_status": dependency.current,
                    "satisfied": dependency.satisfied,
                }
                for dependency in self._units.dependencies(unit)
            ],
        }

    def _row(self, unit: str) -> JsonObject:
        return {"unit": unit, "status": self._units.status(unit), "ready": self._units.is_ready(unit)}


def _remove_stale(path: Path) -> None:
    """Remove the socket of an agent that has ended. Raises OSError when an agent still listens there."""
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
    """Read up to the first line feed, or the end. Raises BrokenResourceError for an overlong line."""
    line = bytearray()
    while b"\n" not in line:
        chunk = await stream.receive_some(4096)
        if not chunk:
            break
        line += chunk
        if len(line) > MAX_LINE:
            raise trio.BrokenResourceError("the line is too long")
    return bytes(line.partition(b"\n")[0])
