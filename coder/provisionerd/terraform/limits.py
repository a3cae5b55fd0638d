"""Memory and processor time of terraform and its providers beside a server: the built-in daemons' processes.

A few lines of a template can make terraform build gigabytes (`indent(1000000, …)`), and it does not end on an interrupt
while it does. Where server and database share the machine, the kernel would then kill one of them. External daemons
have a machine or container of their own, whose limits apply.

Linux only: other systems lack `prlimit`, and get the time limit of the job alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from coder.base.host import container_memory

if sys.platform == "linux":
    import resource

MEMORY_VARIABLE = "CODER_PROVISIONER_TERRAFORM_MEMORY_MIB"
"Environment variable with the most memory of each process, in MiB; 0: no limit."
LEAST_MEMORY = 1 << 30
"Ours: the default is never below it. The largest providers need some 700 MiB."
CPU_SECONDS = 1800
"Ours: an ordinary plan of thousands of resources takes a minute."
_OOM_SCORE = "500"
"Of 1000: when memory is short nevertheless, the kernel ends terraform before server and database."


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one process and of each that it starts; 0: none."""

    memory: int = 0
    "Bytes of private data."
    cpu_seconds: int = 0

    def apply(self, pid: int) -> None:
        """Limit a process that has just started; no effect when it has ended already."""
        if sys.platform != "linux":
            return
        with suppress(OSError, ValueError):
            if self.memory:
                # Not the address space: Go reserves far more than it uses.
                resource.prlimit(pid, resource.RLIMIT_DATA, (self.memory, self.memory))
            if self.cpu_seconds:
                resource.prlimit(pid, resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds + 60))
            if self.memory or self.cpu_seconds:
                Path(f"/proc/{pid}/oom_score_adj").write_text(_OOM_SCORE)


NO_LIMITS = ProcessLimits()


def builtin_limits(daemons: int, environment: Mapping[str, str]) -> ProcessLimits:
    """Return the limits of built-in daemons' processes: together they leave half of the machine's memory."""
    given = environment.get(MEMORY_VARIABLE, "")
    if given.isdecimal():
        return ProcessLimits(int(given) << 20, CPU_SECONDS)
    total = container_memory()[1] or 0
    return ProcessLimits(max(LEAST_MEMORY, total // (2 * max(daemons, 1))), CPU_SECONDS)
