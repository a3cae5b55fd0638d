"""Log files of long-running commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from coder.base import log
from coder.base.errors import CoderError


def open_logs(
    human: str, structured: str, stackdriver: str = "", *, verbose: bool = False, debug: Sequence[str] = ()
) -> None:
    """Return sinks for log lines; an empty path disables one.

    Debug messages pass for loggers whose names match an expression of `debug`; with `verbose`, for all.
    Raise CoderError `bad_option` for an invalid expression.
    """
    is_debugged = None if verbose or not debug else _matches_names(debug)
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
                way = "Choose a file in a directory that this user may write, or /dev/stderr."
                raise CoderError("bad_option", "cannot write logs", way) from error
    log.configure(*sinks, level="debug" if verbose or debug else "info", is_debugged=is_debugged)


def _matches_names(expressions: Sequence[str]) -> Callable[[str], bool]:
    from coder.domain.foundation.patterns import PatternProblem, compiled

    patterns = []
    for text in expressions:
        try:
            patterns.append(compiled(text))
        except PatternProblem as problem:
            raise CoderError(
                "bad_option", f'--log-filter: "{text}" is not a regular expression: {problem}'
            ) from problem
    return lambda name: any(pattern.search(name) for pattern in patterns)
