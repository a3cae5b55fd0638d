"""Main process of the command server: single-threaded, no event loop; it accepts, forks and reports how children
exited.

The launcher starts it with its lock held (descriptor 3) and a minimal environment, so that it never has a caller's
token.
"""

from __future__ import annotations

import fcntl
import gc
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from coder.cli.command_server import worker
from coder.cli.command_server.handover import REPORT, duplicate_above_limit
from coder.cli.command_server.overlay import OverlayChild
from coder.client import shared_link

LOCK = 3
IDLE_SECONDS = 600.0
BACKLOG = 128
_CREDENTIALS = struct.Struct("3i")


class Listener:
    """Listener that serves until it is idle, its program is replaced, or its socket is removed."""

    def __init__(self, path: Path, identity: str, idle: float, overlay: OverlayChild | None = None) -> None:
        self._path, self._identity, self._idle = path, identity, idle
        self._program = _identity_of(Path(sys.executable))
        self._poll = select.poll()
        self._workers: dict[int, tuple[int, socket.socket]] = {}
        "Workers: pidfd -> (pid, the launcher's channel)."
        path.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(str(path))
        path.chmod(0o600)
        server.listen(BACKLOG)
        self._server = socket.socket(fileno=duplicate_above_limit(server.detach()))
        self._server.setblocking(False)
        self._poll.register(self._server, select.POLLIN)
        self._socket = _identity_of(path)
        self._overlay = overlay
        if overlay is not None:
            self._poll.register(overlay.socket, select.POLLIN)

    def serve(self, main: worker.Main, name_of: Callable[[Sequence[str]], str | None]) -> None:
        """Serve until the end; in a child, return after its command."""
        while True:
            ready = self._poll.poll(self._idle * 1000)
            if not ready and not self._workers:
                break
            for descriptor, _ in ready:
                if self._overlay is not None and descriptor in (self._overlay.socket.fileno(), self._overlay.process):
                    self._watch_overlay(self._overlay, descriptor)
                elif descriptor != self._server.fileno():
                    self._reap(descriptor)
                elif self._is_current():
                    self._accept(main, name_of)
                else:
                    self._server.close()  # a waiting launcher runs the command itself
                    return
        self._path.unlink(missing_ok=True)
        if self._overlay is not None:
            self._overlay.close()
        self._accept(main, name_of)  # launchers that connected meanwhile
        self._server.close()

    def _is_current(self) -> bool:
        """Return whether the loaded program (some files are read late) and the socket are unchanged."""
        try:
            return (_identity_of(Path(sys.executable)), _identity_of(self._path)) == (self._program, self._socket)
        except OSError:
            return False

    def _accept(self, main: worker.Main, name_of: Callable[[Sequence[str]], str | None]) -> None:
        while True:
            try:
                channel, _ = self._server.accept()
            except OSError:
                return
            data = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            if _CREDENTIALS.unpack(data)[1] != os.geteuid():
                channel.close()
                continue
            try:
                pid = os.fork()
            except OSError:
                channel.close()  # the process limit is reached: the launcher already has a process
                continue
            if not pid:
                self._close_inherited()
                if self._overlay is not None:
                    self._overlay.socket.close()  # an unaccepted connection would wait for this process
                    shared_link.use_overlay(self._overlay.path)
                os._exit(worker.run(channel, self._identity, main, name_of))
            descriptor = duplicate_above_limit(os.pidfd_open(pid))
            self._workers[descriptor] = (pid, channel)
            self._poll.register(descriptor, select.POLLIN)

    def _watch_overlay(self, overlay: OverlayChild, descriptor: int) -> None:
        """Fork the overlay process on demand; forget it after it exits, so that the next request forks another."""
        if descriptor == overlay.process:
            self._poll.unregister(descriptor)
            overlay.reap()
            self._poll.register(overlay.socket, select.POLLIN)
            return
        self._poll.unregister(overlay.socket)
        if not overlay.fork(self._close_inherited):
            self._poll.register(overlay.socket, select.POLLIN)
            return
        self._poll.register(overlay.process, select.POLLIN)

    def _close_inherited(self) -> None:
        """Close all listener files in a child, so that none outlives the listener."""
        self._server.close()
        os.close(LOCK)
        for descriptor, (_, channel) in self._workers.items():
            os.close(descriptor)
            channel.close()

    def _reap(self, descriptor: int) -> None:
        pid, channel = self._workers.pop(descriptor)
        self._poll.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            try:
                channel.send(REPORT.pack(b"K", os.WTERMSIG(status)), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except OSError:
                pass  # the launcher has exited too
        channel.close()


def _identity_of(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def serve(
    env: Mapping[str, str],
    modules: Mapping[str, str],
    main: worker.Main,
    name_of: Callable[[Sequence[str]], str | None],
) -> int:
    """Run a command server until it ends. `modules`: the module of each command, by its words."""
    from coder.cli.command_server.preload import load_everything

    path, identity = Path(env["CODER_COMMAND_SERVER_SOCKET"]), env["CODER_COMMAND_SERVER_IDENTITY"]
    idle = float(env.get("CODER_COMMAND_SERVER_IDLE", IDLE_SECONDS))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.set_inheritable(LOCK, False)
    keep = _lock_program()
    load_everything(modules)
    gc.collect()
    gc.freeze()  # children share these pages until they are modified
    Listener(path, identity, idle, OverlayChild(path.with_suffix(".overlay"))).serve(main, name_of)
    if keep is not None:
        os.close(keep)
    return 0


def _lock_program() -> int | None:
    """Lock the unpacked program, so that it is not cleaned up as unused (see build/launcher.c)."""
    try:
        held = os.open(Path(sys.executable).with_name(".lock"), os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return duplicate_above_limit(held)
    except OSError:
        return None
