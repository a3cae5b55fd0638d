"""Requests of this process to servers: the last request for error texts, each of them for `--verbose`.

A command's process runs one command, so the log is global. Bodies are never recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Exchange:
    """A request and its outcome. No dataclass: every short command loads this."""

    __slots__ = ("_url", "method", "seconds", "status")

    def __init__(self, method: str, url: str, status: int, seconds: float) -> None:
        self.method = method
        self._url = url
        self.status = status  # 0 when there was no answer
        self.seconds = seconds

    @property
    def shown_url(self) -> str:
        """The URL without possible secrets; all readers get this form."""
        from coder.net.masking import masked  # regular expressions cost more to load than they are used

        return masked(self._url)

    def __str__(self) -> str:
        """Return `GET https://… 200 (12 ms)`, without possible secrets."""
        return f"{self.method} {self.shown_url} {self.status or 'no answer'} ({self.seconds * 1000:.0f} ms)"


class RequestLog:
    """The last exchange, and the subscriber to each."""

    __slots__ = ("last", "listener", "server_version")

    def __init__(self) -> None:
        self.server_version = ""  # from the last answer of a Coder server
        self.last: Exchange | None = None
        self.listener: Callable[[Exchange], None] | None = None

    def note(self, method: str, url: str, status: int, seconds: float) -> None:
        self.last = Exchange(method, url, status, seconds)
        if self.listener is not None:
            self.listener(self.last)

    def record_answer(self, headers: Mapping[str, str]) -> None:
        """Record the head of an answer, its names in lower case."""
        self.server_version = headers.get("x-coder-build-version", "") or self.server_version


REQUESTS = RequestLog()
"""The log of this process."""
