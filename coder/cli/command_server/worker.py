"""Forked process: takes over the caller's environment, runs the command, reports the exit status."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence

from coder.base import caller
from coder.cli.command_server import handover
from coder.cli.command_server.handover import REPORT, BadRequestError
from coder.cli.command_server.served import is_served
from coder.cli.core.ending import flush_and_count

Main = Callable[[Sequence[str]], int]
HANDSHAKE_SECONDS = 5.0
"Seconds for a complete request to arrive; longer than the launcher's timeout."


def run(channel: socket.socket, identity: str, main: Main, name_of: Callable[[Sequence[str]], str | None]) -> int:
    """Run the request and return the exit status of the process; never raise."""
    channel.settimeout(HANDSHAKE_SECONDS)
    try:
        os.setpgid(0, 0)
        channel = socket.socket(fileno=handover.duplicate_above_limit(channel.detach()))
        channel.settimeout(HANDSHAKE_SECONDS)
        request = handover.receive(channel)
        env = {os.fsdecode(name): os.fsdecode(value) for name, value in request.env.items()}
        words = request.argv[1:]
        if request.identity != identity or not is_served(name_of(words), words, env):
            channel.send(REPORT.pack(b"C", 0))
            return 0
        handover.take_over(request)
        caller.run_command_of(handover.peer_of(channel))
        channel.send(REPORT.pack(b"R", os.getpid()))
        if channel.recv(1) != b"G":
            return 0  # the launcher already runs the command itself
        channel.settimeout(None)
    except (BadRequestError, OSError, ValueError, OverflowError):
        return 0  # no reply: the launcher runs the command itself
    code = _finish(main, words)
    try:
        channel.send(REPORT.pack(b"X", code))
    except OSError:
        pass  # the launcher has exited, so the status has no reader
    return code


def _finish(main: Main, words: Sequence[str]) -> int:
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.excepthook = sys.__excepthook__
    return flush_and_count(code) & 0xFF
