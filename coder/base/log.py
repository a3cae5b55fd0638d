"""Structured logs: one event with fields, written to any number of sinks (human text, JSON lines).

This module does not decide what is worth logging. `Secret` values print as `***`; as a second safeguard, fields named
like a token, password, secret or key are masked, and so is the user information of addresses in any field.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO, TypeAlias

from coder.base.errors import CoderError, explain_error

if TYPE_CHECKING:
    from datetime import timedelta
    from ipaddress import IPv4Address, IPv6Address
    from pathlib import PurePath
    from uuid import UUID

    from coder.base.json_types import Json
    from coder.base.secret import Secret

Level = Literal["debug", "info", "warn", "error"]
_ORDER: dict[str, int] = {"debug": 10, "info": 20, "warn": 30, "error": 40}
_MASKED_WORDS = ("password", "token", "secret", "psk", "private_key", "session_key")

LogValue: TypeAlias = (
    "Json | bytes | UUID | datetime | timedelta | PurePath | BaseException | IPv4Address | IPv6Address | Secret"
)
"""A value of a field of a log line."""
Sink = Callable[[Level, datetime, str, str, dict[str, LogValue]], None]

STRANGERS_LINES = 10
"""Lines a minute of each kind for loggers whose warnings and errors a client can cause: the log is on a disk, which a
stranger must not fill."""
_WINDOW = 60.0
_MAX_KINDS = 256
"""Kinds of lines counted by themselves; further ones share a count."""


class _State:
    """Sinks of the process. Module-level by design: a logger must work before and after any composition root."""

    sinks: list[Sink] = []  # noqa: RUF012 - one list for the process
    threshold: int = _ORDER["info"]
    is_debugged: Callable[[str], bool] | None = None
    written: dict[tuple[str, ...], _Written] = {}  # noqa: RUF012 - one count for the process
    lock = threading.Lock()


@dataclass(slots=True)
class _Written:
    """Lines of one kind in this minute."""

    since: float
    count: int = 0
    left_out: int = 0


_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, other line ends, bidirectional controls, lone surrogates."""


_USER_INFORMATION = re.compile(r"://[^/\s\"'<>]*@")
"""User name and password of an address, up to the last @ of its authority."""


class Logger:
    __slots__ = ("_fields", "_per_minute", "name")

    def __init__(self, name: str, fields: dict[str, LogValue] | None = None, per_minute: int = 0) -> None:
        self.name = name
        self._fields = fields or {}
        self._per_minute = per_minute

    def bind(self, **fields: LogValue) -> Logger:
        """Return the same logger with `fields` on every event."""
        return Logger(self.name, {**self._fields, **fields}, self._per_minute)

    def tells(self, level: Level) -> bool:
        """Return whether an entry of this level is written: for callers whose fields are expensive."""
        if _ORDER[level] < _State.threshold or not _State.sinks:
            return False
        return level != "debug" or _State.is_debugged is None or _State.is_debugged(self.name)

    def debug(self, message: str, **fields: LogValue) -> None:
        self._emit("debug", message, fields)

    def info(self, message: str, **fields: LogValue) -> None:
        self._emit("info", message, fields)

    def warn(self, message: str, **fields: LogValue) -> None:
        self._emit("warn", message, fields)

    def error(self, message: str, **fields: LogValue) -> None:
        self._emit("error", message, fields)

    def _emit(self, level: Level, message: str, fields: dict[str, LogValue]) -> None:
        if not self.tells(level):
            return
        merged: dict[str, LogValue] = {name: _shown(name, value) for name, value in {**self._fields, **fields}.items()}
        at = datetime.now(UTC)
        with _State.lock:
            if self._per_minute and _ORDER[level] >= _ORDER["warn"]:
                left_out = self._left_out(message, fields)
                if left_out < 0:
                    return
                if left_out:
                    merged["left_out"] = left_out
            for sink in _State.sinks:
                sink(level, at, self.name, message, merged)

    def _left_out(self, message: str, fields: dict[str, LogValue]) -> int:
        """Return how many lines like this were left out in the last minute; -1: this one is left out, too."""
        kind: tuple[str, ...] = (self.name, message, type(fields.get("error")).__name__)
        if kind not in _State.written and len(_State.written) >= _MAX_KINDS:
            kind = ("",)
        now = time.monotonic()
        written = _State.written.setdefault(kind, _Written(now))
        left_out = 0
        if now - written.since >= _WINDOW:
            left_out = written.left_out
            written.since, written.count, written.left_out = now, 0, 0
        if written.count >= self._per_minute:
            written.left_out += 1
            return -1
        written.count += 1
        return left_out


def get_logger(name: str, *, per_minute: int = 0) -> Logger:
    """Return the logger of that name.

    `per_minute`: at most so many warnings and errors of one kind (message and type of error) are written a minute; the
    next line says in `left_out` how many were not. 0: all.
    """
    return Logger(name, per_minute=per_minute)


def configure(*sinks: Sink, level: Level = "info", is_debugged: Callable[[str], bool] | None = None) -> None:
    """Replace all sinks. Without a sink nothing is written.

    `is_debugged` returns whether a logger's debug messages are written, by its name, and is called once for each.
    """
    _State.sinks = list(sinks)
    _State.written.clear()
    _State.threshold = _ORDER[level]
    _State.is_debugged = functools.cache(is_debugged) if is_debugged else None


@contextlib.contextmanager
def also(sink: Sink) -> Iterator[None]:
    """Add a sink for the duration of the block. It has seen no line, so those of a limited kind are counted again."""
    _State.written.clear()
    _State.sinks = [*_State.sinks, sink]
    try:
        yield
    finally:
        _State.sinks = [other for other in _State.sinks if other is not sink]


def human_sink(stream: TextIO | None = None) -> Sink:
    """Return a sink that writes `2026-11-21 05:07:31.123 [info] name: message  key=value`."""
    out = stream

    def write(level: Level, at: datetime, name: str, message: str, fields: dict[str, LogValue]) -> None:
        tail = "".join(f"  {key}={_text(value)}" for key, value in fields.items())
        stamp = at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"
        _write(out or sys.stderr, f"{stamp} [{level}] {name}: {_line(message)}{tail}\n")

    return write


def json_sink(stream: TextIO | None = None) -> Sink:
    """Return a sink that writes one JSON object a line: ts, level, logger_names, msg, fields."""
    out = stream

    def write(level: Level, at: datetime, name: str, message: str, fields: dict[str, LogValue]) -> None:
        record = {
            "ts": at.isoformat(),
            "level": level.upper(),
            "logger_names": [name],
            "msg": message,
            "fields": fields,
        }
        _write(out or sys.stderr, json.dumps(record, default=str) + "\n")

    return write


_SEVERITIES = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}


def stackdriver_sink(stream: TextIO | None = None) -> Sink:
    """Return a sink that writes one JSON object a line in the format of Google's Cloud Logging for containers:
    severity, message, time."""
    out = stream

    def write(level: Level, at: datetime, name: str, message: str, fields: dict[str, LogValue]) -> None:
        record = {
            "timestamp": at.isoformat(),
            "severity": _SEVERITIES[level],
            "message": message,
            "logging.googleapis.com/labels": {"logger": name},
            **fields,
        }
        _write(out or sys.stderr, json.dumps(record, default=str) + "\n")

    return write


def _write(stream: TextIO, line: str) -> None:
    try:
        stream.write(line)
        stream.flush()
    except (OSError, ValueError):
        pass  # a closed log must never end the program


def _shown(name: str, value: LogValue) -> str | int | float | bool | None:
    lowered = name.lower()
    if value and any(word in lowered for word in _MASKED_WORDS) and isinstance(value, str | bytes):
        return "***"
    if isinstance(value, BaseExceptionGroup):
        # the group's own text names none of them
        return "; ".join(str(_shown(name, inner)) for inner in value.exceptions)
    if isinstance(value, CoderError):
        # "cannot connect" alone is no cause: it may be the network, or this process may have no descriptor left
        causes = explain_error(value, with_hint=False).removeprefix(value.message)
        return _without_logins(f"{type(value).__name__}: {value}{causes}")
    if isinstance(value, BaseException):
        return _without_logins(f"{type(value).__name__}: {_text_of(value)}")
    if isinstance(value, int | float | bool) or value is None:
        return value
    return _without_logins(str(value))


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a driver's error that reads a message it was not given
        return repr(error.args)


def _without_logins(text: str) -> str:
    """Return the text without the user information of its addresses."""
    return _USER_INFORMATION.sub("://***@", text) if "@" in text and "://" in text else text


def _line(text: str) -> str:
    # A line break inside a message would let foreign text forge log lines, an escape sequence could rewrite the
    # reader's terminal, and half a surrogate pair would fail the write.
    return text if text.isprintable() else _UNPRINTABLE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _text(value: LogValue) -> str:
    text = _line(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or text == "" else text
