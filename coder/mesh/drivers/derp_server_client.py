"""Clients of the relay: their queues and limits, those of unknown clients, the turns of readers, and the counters.

Lives here: the queues of one client, its send limit and notices to it. derp_server.py routes its packets and writes the
stream.

Any stranger may connect to a relay with a fresh key. Nodes of the deployment have announced theirs to a coordinator,
usually within milliseconds of their first connection. Until then the clients of one source (an address) share one small
allowance and a number of connections. The coordinator is asked only where a limit is reached, so that ordinary nodes
cost it nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass, field

import trio

from coder.mesh.core.crypto.keys import PublicKey
from coder.mesh.drivers.derp_server_queue import FairQueue
from coder.mesh.drivers.framing import RelayLink

PAUSE = 0.05
"""Ours: seconds for which a sender that fills a receiver's queue is not read at a time, because other receivers of that
sender wait with it."""
STALLED_AFTER = 0.5
"""Seconds without a write to a receiver after which its senders are read again."""
CONTROL_FRAMES = 256
"""Ours: pongs and notices that wait for one reader; a client that floods pings without reading loses answers."""
WATCHED_FRAMES = 1 << 20
"""Another relay of the mesh is notified of every peer, and must not miss one."""
GONE_RATE = 1.0
GONE_BURST = 3.0
FLUSH_BYTES = 131_072
STRANGERS_FRAMES = 500.0
"""Ours: frames a second of all unknown clients of one source; each costs some 50 microseconds. A node that is not known
yet sends a few probes."""
STRANGERS_BYTES = 256.0 * 1024
STRANGERS_BURST = 2.0
"""Seconds' worth that a source may have saved."""
MAX_STRANGERS = 64
"""Ours: connections of unknown keys from one source. Behind one address (a reverse proxy) many nodes may arrive
together, and each counts only until it is known."""
MAX_WAITING = 1024
"""Ours: connections of one source that wait in their login for the next question about keys, while MAX_STRANGERS are
not known yet: all agents behind one address return together after a restart of the relay."""
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
class RelayCounters:
    """Counters of the relay since it started; packets unless named otherwise."""

    connections: int = 0
    """Accepted so far."""
    current: int = 0
    """Open now."""
    received: int = 0
    sent: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    dropped_unknown: int = 0
    """No client with that key is connected."""
    dropped_queue: int = 0
    """The receiver reads too slowly."""
    refused: int = 0
    """Connections refused: their source had too many clients with unknown keys."""
    slow_closed: int = 0
    """Connections closed because a write took longer than two seconds."""
    throttled: int = 0
    """Times a sender had to wait for its rate limit."""
    forwarded_in: int = 0
    """Packets from another relay of the mesh."""
    forwarded_out: int = 0
    """Packets to another relay of the mesh."""
    received_disco: int = 0
    """Probes for a direct path among `received`."""
    dropped_disco: int = 0
    """Probes for a direct path among the dropped packets, for any reason."""
    pings: int = 0
    """Pings; each was answered."""
    unknown_frames: int = 0
    moves_in: int = 0
    """Times a client made this relay its home."""
    moves_out: int = 0
    """Times a client left it for another home."""
    notified_disconnected: int = 0
    """Times a client was notified that a peer disconnected."""
    notified_not_here: int = 0
    """Times a client was notified that a peer is not here."""


@dataclass(frozen=True, slots=True)
class RelayPresence:
    """Clients of the relay now."""

    here: int
    "Keys."
    elsewhere: int
    "Keys at other relays of the mesh, and not here."
    homes: int
    "Connections of clients with this relay as home."
    watchers: int
    "Connections of other relays that watch the clients."


class ConnectedClient:
    """A client's connection."""

    __slots__ = (
        "_burst",
        "_tokens",
        "_tokens_at",
        "busy",
        "bytes_in",
        "bytes_out",
        "control",
        "data",
        "disco",
        "drained",
        "gone_at",
        "gone_tokens",
        "is_known",
        "key",
        "link",
        "mesh",
        "on_known",
        "preferred",
        "recipients",
        "scope",
        "source",
        "stream",
        "wake",
        "wrote_at",
    )

    def __init__(
        self,
        key: PublicKey,
        stream: trio.abc.Stream,
        *,
        mesh: bool,
        burst: int = 0,
        source: Hashable = None,
        on_known: Callable[[], None] = lambda: None,
    ) -> None:
        self.key = key
        self.stream = stream
        self.link: RelayLink | None = None
        """Once set, it is read and written in place of the stream."""
        self.mesh = mesh
        self.source = source
        """Where the connection comes from; None: from this process, or uncounted."""
        self.is_known = mesh or source is None
        """Whether a coordinator knows the key; an unknown client has little allowance."""
        self.on_known = on_known
        self.preferred = False
        self.bytes_in = self.bytes_out = 0
        self.control: list[bytes] = []
        self.data = FairQueue()
        self.disco = FairQueue()
        self.recipients: set[PublicKey] = set()
        self.wake = trio.Event()
        self.drained = trio.lowlevel.ParkingLot()
        self.wrote_at = 0.0
        self.busy: ConnectedClient | None = None
        """A receiver whose queue grew long by our packets."""
        self.scope = trio.CancelScope()
        """That of its tasks, once it is served."""
        self.gone_tokens = GONE_BURST
        self.gone_at = 0.0
        self._burst = burst
        self._tokens = float(burst)
        self._tokens_at = trio.current_time()
        """Time of the last refill for the bytes it may send; the notices about absent peers have `gone_tokens`."""

    def put_control(self, frame: bytes) -> None:
        """Queue a frame before packets; dropped for a client that does not read."""
        if len(self.control) < (WATCHED_FRAMES if self.mesh else CONTROL_FRAMES):
            self.control.append(frame)
            self.wake.set()

    def take(self) -> tuple[int, bytes]:
        """Return the frames for one flush, in order of urgency, with (packets, bytes)."""
        parts, self.control = self.control, []
        packets, size = 0, 0
        for queue in (self.disco, self.data):
            while queue.packets and size < FLUSH_BYTES:
                count, frames = queue.pop()
                packets += count
                size += len(frames)
                parts.append(frames)
        return packets, b"".join(parts)

    @property
    def has_more(self) -> bool:
        """Whether frames wait."""
        return bool(self.control or self.disco.packets or self.data.packets)

    def may_notify_gone(self, now: float) -> bool:
        """Spend one of the notices about absent peers: one a second, three in a burst."""
        self.gone_tokens = min(GONE_BURST, self.gone_tokens + (now - self.gone_at) * GONE_RATE)
        self.gone_at = now
        if self.gone_tokens < 1:
            return False
        self.gone_tokens -= 1
        return True

    def rate_delay(self, used: int, rate: int) -> float:
        """Spend `used` bytes of its allowance; return seconds until `rate` bytes a second have covered them, 0: now."""
        now = trio.current_time()
        self._tokens = min(self._burst, self._tokens + (now - self._tokens_at) * rate) - used
        self._tokens_at = now
        return max(0.0, -self._tokens / rate)

    async def wait_for_drain(self, sender: bytes) -> None:
        """Wait a moment while this receiver reads the packets a sender has queued for it."""
        with trio.move_on_after(PAUSE):
            while self.data.is_crowded_by(sender) and trio.current_time() - self.wrote_at < STALLED_AFTER:
                await self.drained.park()


@dataclass(slots=True)
class _Source:
    """Unknown clients of one source."""

    clients: dict[ConnectedClient, None]
    frames: float
    bytes: float
    filled_at: float
    waiting: dict[ConnectedClient, None] = field(default_factory=dict)
    """Clients that have not been admitted; those of a question leave with its answer."""
    asked_at: float = -ASK_EVERY
    answered: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

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
        """Record a new client; return False when its source has too many unknown ones.

        Where the source has no room, the client waits until the coordinator has been asked about it as well, at most
        ASK_EVERY seconds.
        """
        source = self._sources.get(client.source)
        if source is not None and len(source.clients) >= MAX_STRANGERS:
            if len(source.waiting) >= MAX_WAITING:
                return False
            await self._wait_for_question(source, client)
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

    async def _wait_for_question(self, source: _Source, client: ConnectedClient) -> None:
        source.waiting[client] = None
        try:
            while client in source.waiting:
                await self._ask(source)
                if client in source.waiting:  # asked by another, or before this client came
                    with trio.move_on_at(source.asked_at + ASK_EVERY):
                        await source.answered.park()
        finally:
            source.waiting.pop(client, None)
            self._drop_empty(client.source)

    async def hold(self, client: ConnectedClient, frames: int, size: int) -> bool:
        """Wait until the allowance of an unknown client's source covers what it sent; return whether it waited."""
        source = self._sources.get(client.source)
        if source is None or client not in source.clients:
            return False
        delay = source.delay(frames, size, trio.current_time())
        if not delay:
            return False
        await self._ask(source)
        if client.is_known:
            return False
        # Another client of the source may have asked about both: what was held until then goes on with the answer.
        with trio.move_on_after(delay):
            while not client.is_known:
                await source.answered.park()
        return True

    def forget(self, client: ConnectedClient) -> None:
        """Forget a client that has left, or is known."""
        source = self._sources.get(client.source)
        if source is not None:
            source.clients.pop(client, None)
            self._drop_empty(client.source)

    def _drop_empty(self, name: Hashable) -> None:
        source = self._sources.get(name)
        if source is not None and not source.clients and not source.waiting:
            del self._sources[name]

    async def _ask(self, source: _Source) -> None:
        """Ask about all unknown keys of a source at once, so that a flood asks as rarely as one client."""
        now = trio.current_time()
        if now - source.asked_at < ASK_EVERY:
            return
        source.asked_at = now
        asked = [*source.clients, *source.waiting]
        known = await self._find_known([other.key for other in asked])
        for other in asked:
            source.waiting.pop(other, None)
            if other.key in known and not other.is_known:
                other.is_known = True
                self.forget(other)
                other.on_known()
        source.answered.unpark_all()


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
