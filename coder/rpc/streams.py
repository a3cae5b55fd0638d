"""Stream of a call on a shared connection: what `calls.py` needs beyond trio's interface to spare writes and tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import trio


class SharedStream(trio.abc.HalfCloseableStream):
    """Stream that shares its connection with others, so that what does not matter now is sent with what does."""

    @abstractmethod
    def end_later(self, data: bytes = b"") -> None:
        """Send `data` and close, with the connection's next write: for a call that both sides have finished."""

    @abstractmethod
    def abandon(self) -> None:
        """Close at once, dropping what the peer still sends."""

    @abstractmethod
    def send_soon(self) -> None:
        """Send what is queued, such as the acknowledgement of the stream, although no data follows."""

    @abstractmethod
    def watch(self, on_arrival: Callable[[], None] | None) -> None:
        """Call `on_arrival` when the peer sends anything or ends the stream, at once if it has. None: no longer."""
