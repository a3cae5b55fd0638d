"""Terraform request while it runs: sink of its lines, parsed events, and its timings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from coder.base.json_types import JsonObject
from coder.provisionerd.executors.contract import Emit
from coder.provisionerd.terraform.log_lines import (
    MAX_LINE,
    StageTimings,
    format_diagnostic,
    log_lines,
    read_cut_line,
    read_line,
)
from coder.provisionerd.terraform.provider_pin import SCHEMA_ERRORS
from coder.rpc.proto import provisioner_pb2 as pb

MAX_OUTPUT = 256 * 1024 * 1024
"""Bytes of JSON output of one command (ours). The log keeps 1 MiB of it. Terraform needs minutes of a core for more,
while other jobs wait."""

_REPLACE_ACTIONS = {"replace", "delete-create", "create-delete"}


@dataclass(slots=True)
class Stage:
    """Running request: sink of its lines, and its timings."""

    name: str
    emit: Emit
    timings: StageTimings
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    replaces: bool = False
    "Whether terraform announced that it will replace a resource."
    on_overflow: Callable[[], None] = lambda: None
    "Called once, when the output exceeds the limit."
    pin: str = ""
    "Sentence that replaces errors of the provider's schema, for a template that pins an old provider."
    is_pin_told: bool = False
    printed: int = 0

    _long: dict[int, int] = field(default_factory=dict)
    "Bytes of lines whose end has not arrived, by the level of plain text."

    def on_stdout(self, raw: bytes) -> None:
        self._take(raw, pb.LogLevel.INFO)

    def on_stderr(self, raw: bytes) -> None:
        self._take(raw, pb.LogLevel.ERROR)

    def has_overflowed(self) -> bool:
        return self.printed > MAX_OUTPUT

    def explain_overflow(self) -> str:
        """Return the error when the output exceeded the limit, or ""."""
        return f"it printed more than {MAX_OUTPUT >> 20} MiB and was interrupted" if self.has_overflowed() else ""

    def _take(self, raw: bytes, plain_level: pb.LogLevel.ValueType) -> None:
        if self.has_overflowed():
            return
        self.printed += len(raw)
        if self.has_overflowed():
            self.on_overflow()
        if plain_level in self._long or (len(raw) > MAX_LINE and not raw.endswith(b"\n")):
            self._take_part(raw, plain_level)
            return
        event, text = read_line(raw)
        if event is None:
            self.emit(plain_level, text)
            return
        self.timings.note(event)
        change = event.get("change")
        if isinstance(change, dict) and change.get("action") in _REPLACE_ACTIONS:
            self.replaces = True
        diagnostic = event.get("diagnostic")
        if self.pin and isinstance(diagnostic, dict) and diagnostic.get("summary") in SCHEMA_ERRORS:
            self._tell_pin(diagnostic)
            return
        for level, line in log_lines(event):
            self.emit(level, line)

    def _take_part(self, raw: bytes, plain_level: pb.LogLevel.ValueType) -> None:
        """Emit the beginning of a line that comes in parts, and its length at its end."""
        if plain_level not in self._long:
            self._long[plain_level] = 0
            self.emit(*(read_cut_line(raw) or (plain_level, read_line(raw)[1])))
        self._long[plain_level] += len(raw)
        if raw.endswith(b"\n"):
            self.emit(plain_level, f"The line above has {self._long.pop(plain_level)} bytes and was cut.")

    def _tell_pin(self, diagnostic: JsonObject) -> None:
        """Emit the sentence once, and each place it is about."""
        if not self.is_pin_told:
            self.emit(pb.LogLevel.ERROR, self.pin)
        self.is_pin_told = True
        for line in format_diagnostic({**diagnostic, "detail": ""}).split("\n"):
            if line:
                self.emit(pb.LogLevel.ERROR, line)

    def finish(self, *, failed: bool = False) -> list[pb.Timing]:
        return self.timings.finish(self.started, datetime.now(UTC), failed=failed)
