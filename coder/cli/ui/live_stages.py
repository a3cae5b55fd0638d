"""Live view of a job on a terminal: one line per finished stage; the running stage with its time and last log lines.

`StageView` is the pure view; `LiveStages` redraws it in place. Without a terminal, `progress` prints plain lines.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING

from coder.cli.ui.colour import paint
from coder.cli.ui.output import cut, parse_time
from coder.cli.ui.terminal_text import cleaned, command, one_line

if TYPE_CHECKING:
    from coder.api.provisioning.jobs import ProvisionerJobLog

TAIL = 6
"""Log lines visible below the running stage."""
KEPT = 2000
"""Lines kept of the running stage, to print if it fails."""


@dataclass(frozen=True, slots=True)
class EndedStage:
    """A finished stage as it stays on the terminal."""

    title: str
    lines: tuple[str, ...] = ()
    "Log lines to keep: those of a stage with an error."
    is_good: bool = True


class StageView:
    """View of the running stage and its lines."""

    def __init__(self) -> None:
        self.stage = "Queued"
        self.began: datetime | None = None
        self.last: datetime | None = None
        self.lines: deque[str] = deque(maxlen=KEPT)
        self._has_error = False

    def add(self, log: ProvisionerJobLog) -> EndedStage | None:
        """Add a log line and return the stage that it ends, if any.

        A failed job ends with further stages (cleaning up), so the lines of the stage with the error must stay.
        """
        at, ended = parse_time(log.created_at), None
        stage = one_line(log.stage)
        if stage != self.stage:
            ended = self.end(at, is_good=not self._has_error)
            self.stage, self.began = stage, at
            self.lines.clear()
            self._has_error = False
        self.last = at
        self._has_error = self._has_error or log.log_level == "error"
        if log.output:
            self.lines.extend(cleaned(log.output, colours=False).expandtabs(4).split("\n"))
        return ended

    def end(self, at: datetime | None, *, is_good: bool) -> EndedStage:
        """Return the running stage as finished; a failed one with its lines."""
        took = f" [{(at - self.began).total_seconds() * 1000:.0f}ms]" if at and self.began else ""
        title = f"=== {'✔' if is_good else '✘'} {self.stage}{took}"
        return EndedStage(title, () if is_good else tuple(self.lines), is_good)

    def frame(self, seconds: float, columns: int, rows: int) -> list[str]:
        """Return the running stage in at most this many lines."""
        tail = list(self.lines)[-min(TAIL, max(0, rows - 2)) :] if rows > 2 else []
        return [
            cut(line, columns - 1) for line in (f"==> ⧗ {self.stage} {_elapsed(seconds)}", *(f"  {t}" for t in tail))
        ]


def _elapsed(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


class LiveStages:
    """Stages that draw a StageView; `tick` updates the time."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._view = StageView()
        self._clock = clock
        self._since = clock()
        self._drawn = 0

    def line(self, log: ProvisionerJobLog) -> None:
        ended = self._view.add(log)
        if ended is not None:
            self.clear()
            self._write(ended)
            self._since = self._clock()
            self.tick()

    def tick(self) -> None:
        self.clear()
        size = os.get_terminal_size(sys.stdout.fileno())
        frame = self._view.frame(self._clock() - self._since, size.columns or 80, size.lines or 24)
        styled = [paint(text, "dim" if index else "bold") for index, text in enumerate(frame)]
        sys.stdout.write("".join(f"{text}\n" for text in styled))
        sys.stdout.flush()
        self._drawn = len(frame)

    def clear(self) -> None:
        """Erase the drawing, so that the next output replaces it."""
        if self._drawn:
            command(f"\x1b[{self._drawn}A\r\x1b[J")
            sys.stdout.flush()
            self._drawn = 0

    def finish(self, *, ok: bool) -> None:
        self.clear()
        self._write(self._view.end(self._view.last, is_good=ok))

    def _write(self, ended: EndedStage) -> None:
        sys.stdout.write("".join(f"{text}\n" for text in ended.lines))
        sys.stdout.write(paint(ended.title, "green" if ended.is_good else "red") + "\n")
        sys.stdout.flush()
