"""Clients of the relay whose keys no coordinator knows, and the turns of all its readers.

Any stranger may connect to a relay with a fresh key. Nodes of the deployment have announced theirs to a coordinator,
usually within milliseconds of their first connection. Until then the clients of one source (an address) share one small
allowance and a number of connections. The coordinator is asked only where a limit is reached, so that ordinary nodes
cost it nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass

import trio

from coder.mesh.drivers.derp_server_client import ConnectedClient

STRANGERS_FRAMES = 500.0
"""Ours: frames a second of all unknown clients of one source; each costs some 50 microseconds. A node that is not known
yet sends a few probes."""
STRANGERS_BYTES = 256.0 * 1024
STRANGERS_BURST = 2.0
"""Seconds' worth that a source may have saved."""
MAX_STRANGERS = 64
"""Ours: connections of unknown keys from one source. Behind one address (a reverse proxy) many nodes may arrive
together, and each counts only until it is known."""
ASK_EVERY = 2.0
"""Seconds between two questions about the keys of one source."""
FRAMES_A_TURN = 200
"""Ours: frames, apart from runs of packets to one peer, that all readers together process before the other tasks of the
process run."""
FRAMES_A_READER = 25
"""Ours: the part of it for one reader while others wait."""

FindKnown = Callable[[Sequence[bytes]], Awaitable[set[bytes]]]
"""Returns those of the keys that a coordinator knows."""


@dataclass(slots=True)
class _Source:
    """Unknown clients of one source."""

    clients: dict[ConnectedClient, None]
    frames: float
    bytes: float
    filled_at: float
    asked_at: float = -ASK_EVERY

    def delay(self, frames: int, size: int, now: float) -> float:
        """Spend frames and bytes; return seconds until the allowance covers them."""
        passed, self.filled_at = now - self.filled_at, now
        self.frames = min(STRANGERS_FRAMES * STRANGERS_BURST, self.frames + passed * STRANGERS_FRAMES) - frames
        self.bytes = min(STRANGERS_BYTES * STRANGERS_BURST, self.bytes + passed * STRANGERS_BYTES) - size
        return max(0.0, -self.frames / STRANGERS_FRAMES, -self.bytes / STRANGERS_BYTES)


class UnknownClients:
    """Limits of unknown clients by source."""

    def __init__(self, find_known: FindKnown) -> None:
        self._find_known = find_known
        self._sources: dict[Hashable, _Source] = {}

    async def admit(self, client: ConnectedClient) -> bool:
        """Record a new client; return False when its source has too many unknown ones."""
        source = self._sources.get(client.source)
        if source is not None and len(source.clients) >= MAX_STRANGERS:
            await self._ask(source, client)
            if client.is_known:
                return True
            if len(source.clients) >= MAX_STRANGERS:
                return False
        # Looked up again: it may have gone during the question.
        source = self._sources.get(client.source)
        if source is None:
            now = trio.current_time()
            source = _Source({}, STRANGERS_FRAMES * STRANGERS_BURST, STRANGERS_BYTES * STRANGERS_BURST, now)
            self._sources[client.source] = source
        source.clients[client] = None
        return True

    async def hold(self, client: ConnectedClient, frames: int, size: int) -> bool:
        """Wait until the allowance of an unknown client's source covers what it sent; return whether it waited."""
        source = self._sources.get(client.source)
        if source is None or client not in source.clients:
            return False
        delay = source.delay(frames, size, trio.current_time())
        if not delay:
            return False
        await self._ask(source, client)
        if client.is_known:
            return False
        await trio.sleep(delay)
        return True

    def forget(self, client: ConnectedClient) -> None:
        """Forget a client that has left, or is known."""
        source = self._sources.get(client.source)
        if source is not None:
            source.clients.pop(client, None)
            if not source.clients:
                del self._sources[client.source]

    async def _ask(self, source: _Source, client: ConnectedClient) -> None:
        """Ask about all unknown keys of a source at once, so that a flood asks as rarely as one client."""
        now = trio.current_time()
        if now - source.asked_at < ASK_EVERY:
            return
        source.asked_at = now
        asked = [*source.clients, client]
        known = await self._find_known([other.key for other in asked])
        for other in asked:
            if other.key in known and not other.is_known:
                other.is_known = True
                self.forget(other)
                other.on_known()


class FrameTurns:
    """Shares the frames of a turn of the event loop among the readers that want one."""

    def __init__(self) -> None:
        self._left = FRAMES_A_TURN
        self._waiting = trio.lowlevel.ParkingLot()
        self._renewing = False

    async def take(self) -> int:
        """Return how many frames a reader may process now; waits in order of arrival when the turn's are used up."""
        if self._left > 0 and not self._waiting:
            return self._left
        if not self._renewing:
            self._renewing = True
            # A task of its own: a reader may end while others wait for it.
            trio.lowlevel.spawn_system_task(self._renew)
        await self._waiting.park()
        return FRAMES_A_READER

    def spend(self, frames: int) -> None:
        """Count processed frames."""
        self._left -= frames

    async def _renew(self) -> None:
        try:
            while self._waiting:
                await trio.lowlevel.checkpoint()
                self._left = FRAMES_A_TURN
                self._waiting.unpark(count=FRAMES_A_TURN // FRAMES_A_READER)
        finally:
            self._renewing = False
