"""Child process that keeps the overlay of served commands (coder/client/overlay_process.py), forked on first use.

The child has an event loop and threads, which the forking process must never have.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from coder.base.open_files import raise_open_files
from coder.base.threads import run_trio
from coder.cli.command_server.handover import duplicate_above_limit
from coder.client.overlay_process import serve_overlay

BACKLOG = 128


class OverlayChild:
    """Overlay process, and its socket, which exists before the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(BACKLOG)
        self.socket = socket.socket(fileno=duplicate_above_limit(listening.detach()))
        self.process = -1
        "pidfd of the process while it runs."
        self._pid = 0
        read_end, write_end = os.pipe()
        self._life_read_end, self._life_write_end = duplicate_above_limit(read_end), duplicate_above_limit(write_end)
        """Read end of a pipe. The process exits when all write ends are closed: by the command server and by its
        commands, which inherit it."""

    def fork(self, forget: Callable[[], None]) -> bool:
        """Fork the process; return False if the system cannot. `forget` closes inherited files in the child."""
        try:
            self._pid = os.fork()
        except OSError:
            return False
        if not self._pid:
            forget()
            os.close(self._life_write_end)
            self._run()
        self.process = duplicate_above_limit(os.pidfd_open(self._pid))
        return True

    def _run(self) -> None:
        code = 0
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.setpgid(0, 0)
            raise_open_files()
            run_trio(serve_overlay, self.socket, self._life_read_end)
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stderr.flush()
        os._exit(code)

    def reap(self) -> None:
        os.waitpid(self._pid, 0)
        os.close(self.process)
        self.process = -1

    def close(self) -> None:
        self.path.unlink(missing_ok=True)
        self.socket.close()
