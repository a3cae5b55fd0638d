"""The agent as the first process of a container: somebody must collect the processes whose parents have gone.

The process that was started first becomes the reaper and does nothing else; a child of it is the agent. Signals go to
the agent, and its end is the reaper's. Source: wait(2), and what every small init does.
"""

from __future__ import annotations

import os
import signal
import sys

FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def must_reap(pid: int, platform: str, *, no_reap: bool) -> bool:
    """Whether orphans will be given to this process."""
    return pid == 1 and platform.startswith("linux") and not no_reap


def reap_if_first(*, no_reap: bool) -> None:
    """Returns in the process that is to be the agent; in the reaper it never returns."""
    if must_reap(os.getpid(), sys.platform, no_reap=no_reap):
        become_reaper()


def become_reaper() -> None:
    """Forks: the child returns, the parent waits for every orphan and ends as the child does."""
    child = os.fork()
    if child == 0:
        return
    for name in FORWARDED:
        signal.signal(getattr(signal, name), lambda number, _frame: os.kill(child, number))
    while True:
        pid, status = os.wait()  # interrupted by a signal it goes on (PEP 475)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
