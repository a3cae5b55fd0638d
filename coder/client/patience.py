"""Repeating what a command reads while it waits: it goes on through a restart of the server or of its database."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from coder.base.retry import Backoff
from coder.net.errors import HttpError, NetError, is_outage

if TYPE_CHECKING:
    from coder.client.answers import Answer
    from coder.net.blocking import BlockingClient, HttpAnswer
    from coder.net.http1 import HttpClient

PATIENCE = 60.0
"""Seconds without an answer after which a command gives up: a failover of the database may take half of them."""


class Patience:
    """Pauses between attempts to read, in seconds, while the server or its database is away. `now` is monotonic."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._backoff = Backoff(0.1, 5)
        self._since: float | None = None

    def answered(self) -> None:
        self._since = None
        self._backoff.reset()

    def next_delay(self, error: HttpError | NetError) -> float:
        """Return the pause before the next attempt. Raises the error if it is no outage, or outages were all that came
        for `PATIENCE`."""
        if self._since is None:
            self._since = self._now()
        if not is_outage(error) or self._now() - self._since > PATIENCE:
            raise error
        return self._backoff.next_delay()


def read_patiently(client: BlockingClient, path: str) -> HttpAnswer:
    """Return the answer to a GET request of a command that waits. Raises HttpError and NetError, those of an outage
    after `PATIENCE`."""
    patience = Patience()
    while True:
        try:
            return client.request("GET", path)
        except (HttpError, NetError) as error:
            time.sleep(patience.next_delay(error))


async def aread_patiently(client: HttpClient, path: str) -> Answer:
    """Return the same without blocking the event loop."""
    import trio

    patience = Patience(trio.current_time)
    while True:
        try:
            return await client.request("GET", path)
        except (HttpError, NetError) as error:
            await trio.sleep(patience.next_delay(error))
