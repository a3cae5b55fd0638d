"""Format of Google's Cloud Logging: one object a line with a severity and a message, secrets masked."""

from __future__ import annotations

import errno
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from coder.base import log
from coder.base.errors import CoderError


def test_stackdriver_line() -> None:
    out = io.StringIO()
    with log.also(log.stackdriver_sink(out)):
        log.get_logger("server").warn("beware", workspace="dev", token="hush")
    entry = json.loads(out.getvalue())
    assert entry.pop("timestamp")
    assert entry == {
        "severity": "WARNING",
        "message": "beware",
        "logging.googleapis.com/labels": {"logger": "server"},
        "workspace": "dev",
        "token": "***",
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://user:s3cret@x.example/a", "https://***@x.example/a"),
        ("from https://s3cret@a/ to ssh://git:s3@cret@b/", "from https://***@a/ to ssh://***@b/"),
        (OSError("GET https://user:s3cret@x/"), "OSError: GET https://***@x/"),
        (Path("/mnt/a@b"), "/mnt/a@b"),
        ("https://x.example/a mail to a@example.com", "https://x.example/a mail to a@example.com"),
    ],
)
def test_login_of_addresses_is_masked(value: Any, shown: str) -> None:
    out = io.StringIO()
    with log.also(log.stackdriver_sink(out)):
        log.get_logger("agent").info("connected", url=value)
    assert json.loads(out.getvalue())["url"] == shown


def test_error_group_names_members() -> None:
    out = io.StringIO()
    with log.also(log.stackdriver_sink(out)):
        group = ExceptionGroup("tasks", [OSError("no file"), ExceptionGroup("more", [ValueError("no number")])])
        log.get_logger("server").warn("failed", error=group)
    assert json.loads(out.getvalue())["error"] == "OSError: no file; ValueError: no number"


def test_error_without_its_text_is_shown() -> None:
    class DriverError(Exception):
        def __str__(self) -> str:
            return str(self.args[0])

    assert log._shown("error", DriverError()) == "DriverError: ()"


def test_causes_of_an_error_are_shown() -> None:
    written = io.StringIO()
    with log.also(log.human_sink(written)):
        error = CoderError("unreachable", "cannot connect to db:5432", "Is it running?")
        error.__cause__ = OSError("all attempts to connect to db:5432 failed")
        error.__cause__.__cause__ = OSError(errno.EMFILE, "Too many open files")
        log.get_logger("test").warn("not connected", error=error)
    assert written.getvalue().endswith('error="CoderError: cannot connect to db:5432: Too many open files"\n')


def test_clients_cannot_fill_log(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[str, dict[str, Any]]] = []
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    logger = log.get_logger("server", per_minute=3).bind(part="http")
    with log.also(lambda _level, _at, _name, message, fields: lines.append((message, fields))):
        for _ in range(500):
            logger.error("failed", error=OSError("reset"))
            logger.info("as often as it likes")
        logger.error("failed", error=ValueError("another kind"))
        now[0] += 61
        logger.error("failed", error=OSError("reset"))
    failures = [fields for message, fields in lines if message == "failed"]
    kinds = [str(fields["error"]).partition(":")[0] for fields in failures]
    assert kinds == ["OSError", "OSError", "OSError", "ValueError", "OSError"]
    assert failures[-1]["left_out"] == 497
    assert len(lines) == 500 + 5


def test_kinds_of_lines_are_bounded() -> None:
    lines: list[str] = []
    logger = log.get_logger("server", per_minute=1)
    with log.also(lambda _level, _at, _name, message, _fields: lines.append(message)):
        for number in range(1000):
            logger.warn(f"kind {number}")
    assert len(lines) == log._MAX_KINDS + 1
