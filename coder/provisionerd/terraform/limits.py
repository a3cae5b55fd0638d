"""Memory and processor time of terraform and its providers beside a server: the built-in daemons' processes.

A few lines of a template can make terraform build gigabytes (`indent(1000000, …)`), and it does not end on an interrupt
while it does. Where server and database share the machine, the kernel would then kill one of them. External daemons
have a machine or container of their own, whose limits apply.

A template may start an agent on this machine, which inherits what the kernel limits. So only the soft limit of memory
is set, which the agent raises again (`lift_terraform_limits`), and processor time is counted here, in terraform's
session alone: Go ignores the signal of the kernel's soft limit.

Linux only: other systems lack `prlimit`, and get the time limit of the job alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from coder.base.host import TERRAFORM_OOM_SCORE, container_memory

if sys.platform == "linux":
    import resource

MEMORY_VARIABLE = "CODER_PROVISIONER_TERRAFORM_MEMORY_MIB"
"Environment variable with the most memory of each process, in MiB; 0: no limit."
LEAST_MEMORY = 1 << 30
"Ours: the default is never below it. The largest providers need some 700 MiB."
CPU_SECONDS = 1800
"Ours: an ordinary plan of thousands of resources takes a minute."
_POLL = 1.0
"Seconds between two looks at the processor time, once it can have been used up."


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one process and of each that it starts; 0: none."""

    memory: int = 0
    "Bytes of private data."
    cpu_seconds: float = 0

    def apply(self, pid: int) -> None:
        """Limit a process that has just started; no effect when it has ended already."""
        if sys.platform != "linux":
            return
        with suppress(OSError, ValueError):
            if self.memory:
                # Not the address space: Go reserves far more than it uses.
                _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
                soft = self.memory if hard == resource.RLIM_INFINITY else min(self.memory, hard)
                resource.prlimit(pid, resource.RLIMIT_DATA, (soft, hard))
            if self.memory or self.cpu_seconds:
                Path(f"/proc/{pid}/oom_score_adj").write_text(TERRAFORM_OOM_SCORE)

    async def wait_cpu_used(self, session: int) -> None:
        """Wait until a process of the session has used more processor time than it may; then kill the process.

        Never returns without a limit.
        """
        if not self.cpu_seconds or sys.platform != "linux":
            await trio.sleep_forever()
        await trio.sleep(self.cpu_seconds / (os.cpu_count() or 1))
        while True:
            greedy = [pid for pid, used in _cpu_times(session).items() if used > self.cpu_seconds]
            for pid in greedy:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if greedy:
                return
            await trio.sleep(_POLL)


def _cpu_times(session: int) -> dict[int, float]:
    """Return the processor time of each process of a session, in seconds."""
    times: dict[int, float] = {}
    ticks = os.sysconf("SC_CLK_TCK")
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, IndexError):  # it has ended
            # The program's name comes first, and may contain anything.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                times[int(entry.name)] = (int(fields[11]) + int(fields[12])) / ticks
    return times


NO_LIMITS = ProcessLimits()


def builtin_limits(daemons: int, environment: Mapping[str, str]) -> ProcessLimits:
    """Return the limits of built-in daemons' processes: together they leave half of the machine's memory."""
    given = environment.get(MEMORY_VARIABLE, "")
    if given.isdecimal():
        return ProcessLimits(int(given) << 20, CPU_SECONDS)
    total = container_memory()[1] or 0
    return ProcessLimits(max(LEAST_MEMORY, total // (2 * max(daemons, 1))), CPU_SECONDS)
