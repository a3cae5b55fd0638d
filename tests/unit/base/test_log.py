"""Format of Google's Cloud Logging: one object a line with a severity and a message, secrets masked."""

from __future__ import annotations

import io
import json

from coder.base import log


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


def test_error_group_names_members() -> None:
    out = io.StringIO()
    with log.also(log.stackdriver_sink(out)):
        group = ExceptionGroup("tasks", [OSError("no file"), ExceptionGroup("more", [ValueError("no number")])])
        log.get_logger("server").warn("failed", error=group)
    assert json.loads(out.getvalue())["error"] == "OSError: no file; ValueError: no number"
