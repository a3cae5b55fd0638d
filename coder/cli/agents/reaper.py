"""Reaping of orphaned processes when the agent is the first process of a container.

The first process becomes the reaper and does nothing else; the agent is its child. The reaper forwards signals to the
agent and exits with its status. Source: wait(2), and common small init programs.
"""

from __future__ import annotations

import os
import signal
import sys

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def must_reap(pid: int, platform: str, *, no_reap: bool) -> bool:
    """Return whether this process inherits orphans."""
    return pid == 1 and platform.startswith("linux") and not no_reap


def reap_if_first(*, no_reap: bool) -> None:
    """Return in the process that runs the agent; never return in the reaper."""
    if must_reap(os.getpid(), sys.platform, no_reap=no_reap):
        become_reaper()


def become_reaper() -> None:
    """Fork: the child returns; the parent reaps every orphan and exits with the child's status."""
    child = os.fork()
    if child == 0:
        return
    for name in FORWARDED:
        signal.signal(getattr(signal, name), lambda number, _frame: os.kill(child, number))
    while True:
        pid, status = os.wait()  # retried after a signal (PEP 475)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
