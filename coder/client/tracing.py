"""Diagnostic files of an open link: a capture of inner packets, a log of the connection."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from coder.base import log
from coder.base.caller import parent_pid
from coder.base.errors import CoderError
from coder.base.files.private_files import open_private
from coder.mesh.description import Tap, TraceFields
from coder.mesh.trace import PcapWriter, Trace
from coder.net.request_log import REQUESTS

_log = log.get_logger("mesh")
_requests = log.get_logger("requests")


@contextmanager
def open_capture(path: str) -> Iterator[Tap]:
    """Return a tap that writes to a pcap file, which only its owner can read: it has the packets before encryption.
    Raise CoderError if the file cannot be created."""
    try:
        file = os.fdopen(open_private(Path(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb")
    except OSError as error:
        raise CoderError("pcap", f"cannot write the capture file {path}", "Choose a writable path.") from error
    with file:
        yield PcapWriter(file, time.time)


def logging_trace() -> Trace:
    """Return a trace that writes events as log lines."""
    return Trace(lambda fact: _log.debug(fact.name, **_loggable(fact.fields)))


def _loggable(fields: TraceFields) -> dict[str, str | float | bool | None]:
    return {
        name: value if isinstance(value, str | int | float | bool) or value is None else str(value)
        for name, value in fields.items()
    }


@contextmanager
def log_to_directory(directory: str) -> Iterator[Path]:
    """Write all log messages, debug included, and each request to a new file in the directory. Raise CoderError.

    With `--verbose`, too, requests go to the file only: editors show what a ProxyCommand writes to standard error.
    """
    folder = Path(directory).expanduser()
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    # Editors find the log of their connection by the pid of its parent, the SSH client.
    path = folder / f"coder-ssh-{stamp}-{secrets.token_hex(3)}-{parent_pid()}.log"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.open("x", encoding="utf-8")
    except OSError as error:
        raise CoderError("log_dir", f"cannot write a log in {folder}", "Choose a writable directory.") from error
    with file:
        log.configure(log.human_sink(file), level="debug")
        listener, REQUESTS.listener = REQUESTS.listener, lambda exchange: _requests.debug(str(exchange))
        try:
            yield path
        except BaseException:
            listener = None  # the explanation of a failure makes requests, too, when the file is closed
            raise
        finally:
            REQUESTS.listener = listener
            log.configure()
