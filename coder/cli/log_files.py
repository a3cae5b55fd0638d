"""Where a long-running command writes its log."""

from __future__ import annotations

import sys
from pathlib import Path

from coder.base import log
from coder.base.errors import CoderError


def open_logs(human: str, structured: str, stackdriver: str = "", *, verbose: bool = False) -> None:
    """Sinks for log lines; an empty path means none."""
    sinks = []
    for path, make in ((human, log.human_sink), (structured, log.json_sink), (stackdriver, log.stackdriver_sink)):
        if path == "/dev/stderr":
            sinks.append(make(sys.stderr))
        elif path == "/dev/stdout":
            sinks.append(make(sys.stdout))
        elif path:
            try:
                sinks.append(make(Path(path).open("a", encoding="utf-8")))  # noqa: SIM115 - open until the process ends
            except OSError as error:
                raise CoderError("bad_option", f"cannot write logs to {path}") from error
    log.configure(*sinks, level="debug" if verbose else "info")
