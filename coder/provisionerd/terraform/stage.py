"""One request to terraform while it runs: where its lines go, what they tell, and its spans of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from coder.provisionerd.executors.contract import Emit
from coder.provisionerd.terraform.log_lines import StageTimings, log_lines, read_line
from coder.rpc.proto import provisioner_pb2 as pb

MAX_OUTPUT = 256 * 1024 * 1024
"""Bytes one command may print, as JSON (ours). Nobody reads them: the log keeps 1 MiB. Terraform needs minutes of a
core for more, while other jobs wait."""

_REPLACED = {"replace", "delete-create", "create-delete"}


@dataclass(slots=True)
class Stage:
    """One request while it runs: where its lines go, and its spans of time."""

    name: str
    emit: Emit
    timings: StageTimings
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    replaces: bool = False
    "terraform announced that it will replace something."
    on_flood: Callable[[], None] = lambda: None
    "Called once, when more was printed than a command may."
    printed: int = 0

    def on_stdout(self, raw: bytes) -> None:
        self._take(raw, pb.LogLevel.INFO)

    def on_stderr(self, raw: bytes) -> None:
        self._take(raw, pb.LogLevel.ERROR)

    def flooded(self) -> bool:
        return self.printed > MAX_OUTPUT

    def explain_flood(self) -> str:
        """What is wrong when it printed too much, or ""."""
        return f"it printed more than {MAX_OUTPUT >> 20} MiB and was interrupted" if self.flooded() else ""

    def _take(self, raw: bytes, plain_level: pb.LogLevel.ValueType) -> None:
        if self.flooded():
            return
        self.printed += len(raw)
        if self.flooded():
            self.on_flood()
        event, text = read_line(raw)
        if event is None:
            self.emit(plain_level, text)
            return
        self.timings.note(event)
        change = event.get("change")
        if isinstance(change, dict) and change.get("action") in _REPLACED:
            self.replaces = True
        for level, line in log_lines(event):
            self.emit(level, line)

    def finish(self, *, failed: bool = False) -> list[pb.Timing]:
        return self.timings.finish(self.started, datetime.now(UTC), failed=failed)
