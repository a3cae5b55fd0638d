"""What the supervisor remembers of processes that were lost: incidents for the health report and metrics, and when each
is replaced. Replacing is `supervisor.py`'s."""

from __future__ import annotations

import time
from uuid import UUID

from coder.base.clock import SystemClock
from coder.base.log import LogValue, get_logger
from coder.coderd.processes.children import Child
from coder.coderd.services.foundation.this_process import Incident

STEADY = 60.0
"""Seconds after which a process counts as started, and a next loss is replaced at once."""
FIRST_REST, LONGEST_REST = 1.0, 15.0
"""Seconds before a process that was lost again is replaced."""
OUT_OF_MEMORY = "If no administrator sent the signal, the kernel did: memory ran out. Its own log (dmesg) tells."
"""Hint for a loss by SIGKILL: a process cannot say that it was killed for memory."""
_SIGKILL = 9
_MAX_INCIDENTS = 50
_log = get_logger("supervisor")


class Losses:
    """Lost processes, by name."""

    def __init__(self) -> None:
        self.instances: list[UUID] = []
        "Ids of the last lost processes, as replicas know them."
        self.incidents: list[Incident] = []
        self.due: dict[str, float] = {}
        "Times when processes are replaced, by name."
        self._restarts: dict[tuple[str, str], int] = {}
        self._rests: dict[str, float] = {}
        "Seconds before the next replacement, by name."

    @property
    def restarts(self) -> list[tuple[str, str, int]]:
        """Return (name, cause, number of losses)."""
        return [(name, cause, number) for (name, cause), number in self._restarts.items()]

    def inherit(self, instances: list[str], incidents: list[Incident], restarts: list[tuple[str, str, int]]) -> None:
        """Go on from what the former program of this process remembered."""
        self.instances = [UUID(instance) for instance in instances]
        self.incidents = list(incidents)
        self._restarts = {(name, cause): number for name, cause, number in restarts}

    def note_instance(self, instance: UUID) -> None:
        """Remember which replica is gone."""
        self.instances = [*self.instances, instance][-_MAX_INCIDENTS:]

    def record(self, child: Child, *, is_replaced: bool) -> None:
        """Log and count a lost process; plan its replacement, if there is one."""
        cause, detail = child.describe_end()
        lived = time.monotonic() - child.began_at
        rest = 0.0 if lived >= STEADY or not self._rests.get(child.name) else self._rests[child.name]
        self._rests[child.name] = min(max(2 * rest, FIRST_REST), LONGEST_REST)
        hint = {"hint": OUT_OF_MEMORY} if cause == "signal" and child.status == -_SIGKILL else {}
        note: dict[str, LogValue] = {"process": child.name, "pid": child.pid, "cause": detail, "rest": rest, **hint}
        _log.error("a process was lost and is replaced", **note)
        incident = Incident(child.name, cause, detail, SystemClock().now().timestamp())
        self.incidents = [*self.incidents, incident][-_MAX_INCIDENTS:]
        self._restarts[child.name, cause] = self._restarts.get((child.name, cause), 0) + 1
        if is_replaced:
            self.due[child.name] = time.monotonic() + rest

    def postpone(self, name: str) -> None:
        """Plan another attempt to start a process, which the system refused."""
        self.due[name] = time.monotonic() + LONGEST_REST / 3

    def is_due(self, name: str) -> bool:
        """Return whether a process has to be started now."""
        return name in self.due and self.due[name] <= time.monotonic()
