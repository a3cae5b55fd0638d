"""Stages of a job on the terminal: headings with their time, log lines below."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from coder.cli.ui.output import parse_time

if TYPE_CHECKING:
    from coder.api.provisioning.jobs import ProvisionerJobLog


class Stages(Protocol):
    """Display of a job's log."""

    def line(self, log: ProvisionerJobLog) -> None: ...

    def tick(self) -> None:
        """Update the elapsed time."""

    def clear(self) -> None:
        """Prepare for other output."""

    def finish(self, *, ok: bool) -> None: ...


class StagePrinter:
    """Stages that print job log lines: `==> ⧗ stage`, its lines, `=== ✔ stage [12ms]`."""

    def __init__(self) -> None:
        self._stage = ""
        self._since: datetime | None = None
        self._last: datetime | None = None

    def line(self, log: ProvisionerJobLog) -> None:
        at = parse_time(log.created_at)
        if log.stage != self._stage:
            self._end(at)
            self._stage, self._since = log.stage, at
            sys.stdout.write(f"==> ⧗ {self._stage}\n")
        self._last = at
        if log.output:
            sys.stdout.write(f"{log.output}\n")
        sys.stdout.flush()

    def tick(self) -> None:
        """Do nothing: printed lines are not redrawn."""

    def clear(self) -> None:
        """Do nothing, as `tick`."""

    def finish(self, *, ok: bool) -> None:
        self._end(self._last, mark="✔" if ok else "✘")
        sys.stdout.flush()

    def _end(self, at: datetime | None, mark: str = "✔") -> None:
        if not self._stage:
            return
        took = (at - self._since).total_seconds() * 1000 if at and self._since else 0
        sys.stdout.write(f"=== {mark} {self._stage} [{took:.0f}ms]\n")


class NoStages:
    """Stages that print nothing."""

    def line(self, log: ProvisionerJobLog) -> None:
        pass

    def tick(self) -> None:
        pass

    def clear(self) -> None:
        pass

    def finish(self, *, ok: bool) -> None:
        pass
