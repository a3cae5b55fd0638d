"""What this process has asked of servers: the last request for error texts, each of them for `--verbose`.

A command's process runs one command, so this is the process's own. Bodies are never noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


class Exchange:
    """One request and how it went. No dataclass: every short command loads this."""

    __slots__ = ("_url", "method", "seconds", "status")

    def __init__(self, method: str, url: str, status: int, seconds: float) -> None:
        self.method = method
        self._url = url
        self.status = status  # 0 when there was no answer
        self.seconds = seconds

    @property
    def shown_url(self) -> str:
        """The URL without what may be a secret; nobody is to have the other."""
        from coder.net.masking import masked  # regular expressions cost more to load than they are used

        return masked(self._url)

    def __str__(self) -> str:
        """`GET https://… 200 (12 ms)`, without what may be a secret."""
        return f"{self.method} {self.shown_url} {self.status or 'no answer'} ({self.seconds * 1000:.0f} ms)"


class RequestLog:
    """The last exchange, and who wants to hear of each."""

    __slots__ = ("last", "listener", "server_version")

    def __init__(self) -> None:
        self.server_version = ""  # as the last answer of a Coder server says it
        self.last: Exchange | None = None
        self.listener: Callable[[Exchange], None] | None = None

    def note(self, method: str, url: str, status: int, seconds: float) -> None:
        self.last = Exchange(method, url, status, seconds)
        if self.listener is not None:
            self.listener(self.last)

    def heard_from(self, headers: Mapping[str, str]) -> None:
        """The head of an answer, its names in lower case."""
        self.server_version = headers.get("x-coder-build-version", "") or self.server_version


REQUESTS = RequestLog()
"""Of this process."""
