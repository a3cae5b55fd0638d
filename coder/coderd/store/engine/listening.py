"""LISTEN: one connection shared by all readers, reopened after it was lost.

Its coroutines run on the database's loop (`DatabaseLoop.call`); readers wait in trio. Notifying is in `pubsub.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import trio

from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.coderd.store.engine.availability import DRIVER_ERRORS, SILENT_AFTER, Availability
from coder.coderd.store.engine.new_connections import Connector, set_tcp_options

RESYNC = "\x00resync"
"""Payload on every listening channel after the listening connection was reopened: notices may have been missed."""

PING_EVERY = 5.0
"""Seconds between pings of the listening connection: they detect an outage while no other work runs."""
_PING_TIMEOUT = 60.0
"""Seconds without an answer after which the connection counts as lost; a busy machine may take some of them."""
_BIG_NOTICE = 7600

_log = get_logger("database")
T = TypeVar("T")


class DatabaseLoop(Protocol):
    """Methods of the database that listening uses."""

    connect_arguments: dict[str, Any]
    connect: Connector
    tcp_options: Mapping[str, int]
    availability: Availability

    async def call(self, make: Callable[[], Coroutine[None, None, T]]) -> T: ...


@dataclass(slots=True)
class PgNotificationCounters:
    """Counters of the listening connection since the start."""

    small: int = 0
    big: int = 0
    """Payloads near Postgres' limit (upstream draws the line at 7600 bytes)."""
    received_bytes: int = 0
    losses: int = 0
    subscribed: int = 0


@dataclass(frozen=True, slots=True)
class PgListening:
    """State of listening."""

    is_connected: bool
    channels: int
    """Number of channels with readers."""
    subscribers: int
    counters: PgNotificationCounters


MAX_WAITING = 1000
"""Notices that wait for one reader; one more, and it gets RESYNC instead of them."""


class Subscription:
    """Reader of some channels."""

    __slots__ = ("channels", "receive", "send")

    def __init__(self, channels: tuple[str, ...]) -> None:
        self.channels = channels
        self.send, self.receive = trio.open_memory_channel[tuple[str, str]](MAX_WAITING)

    def deliver(self, channel: str, payload: str) -> None:
        try:
            self.send.send_nowait((channel, payload))
        except trio.WouldBlock:
            self._overflow(channel)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the reader is closing

    def _overflow(self, channel: str) -> None:
        with contextlib.suppress(trio.WouldBlock):
            while True:
                self.receive.receive_nowait()
        self.deliver(channel, RESYNC)


class Listeners:
    """Single connection that listens for all readers and reconnects when it is lost."""

    def __init__(self, database: DatabaseLoop, nursery: trio.Nursery) -> None:
        self._database = database
        self._nursery = nursery
        self._by_channel: dict[str, list[Subscription]] = {}
        self._connection: Any = None
        self._connected = trio.Event()
        self._lost = trio.Event()
        self._lock = trio.Lock()
        self._running = False
        self.counters = PgNotificationCounters()
        self._listening: set[str] = set()
        "Channels the current connection listens on."

    @property
    def is_connected(self) -> bool:
        return self._connection is not None and not self._lost.is_set()

    async def subscribe(self, channels: tuple[str, ...]) -> Subscription:
        subscription = Subscription(channels)
        self.counters.subscribed += 1
        if not self._running:
            self._running = True
            self._nursery.start_soon(self._keep_connected)
        await self._connected.wait()
        for channel in channels:
            readers = self._by_channel.setdefault(channel, [])
            readers.append(subscription)
        try:
            for channel in channels:
                await self._listen(channel)
        except BaseException:
            self.unsubscribe(subscription)
            raise
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Remove a reader. The server keeps LISTENing: channels are few and are reused often."""
        for channel in subscription.channels:
            readers = self._by_channel.get(channel, [])
            if subscription in readers:
                readers.remove(subscription)
        subscription.send.close()
        subscription.receive.close()

    def state(self) -> PgListening:
        readers = [item for item in self._by_channel.values() if item]
        distinct = {id(reader) for item in readers for reader in item}
        return PgListening(self.is_connected, len(readers), len(distinct), self.counters)

    async def _listen(self, channel: str) -> None:
        async with self._lock:
            connection, lost = self._connection, self._lost
            if connection is None or channel in self._listening:
                return  # without a connection the reconnect listens on every known channel
            notice = self._on_notice()  # called here, not on the loop: it needs trio's token
            try:
                # Bounded: `_ping` waits for the same lock, and would not notice a database that hangs here.
                with trio.fail_after(_PING_TIMEOUT):
                    await self._database.call(lambda: _add_listener(connection, channel, notice))
            except (*DRIVER_ERRORS, trio.TooSlowError) as error:
                _log.warn("listening failed, reconnecting", channel=channel, error=error)
                await self._drop(connection, lost)
            else:
                # Only after success: otherwise a cancelled subscriber would leave the channel marked, without notices
                # for the next.
                self._listening.add(channel)

    def _on_notice(self) -> Callable[[str, str], None]:
        token = trio.lowlevel.current_trio_token()

        def notice(channel: str, payload: str) -> None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(self._on_payload, channel, payload)

        return notice

    def _on_payload(self, channel: str, payload: str) -> None:
        counters, size = self.counters, len(payload)
        counters.received_bytes += size
        if size < _BIG_NOTICE:
            counters.small += 1
        else:
            counters.big += 1
        self._dispatch(channel, payload)

    def _dispatch(self, channel: str, payload: str) -> None:
        for subscription in tuple(self._by_channel.get(channel, ())):
            subscription.deliver(channel, payload)

    async def _keep_connected(self) -> None:
        backoff = Backoff(0.05, 5.0)
        first = True
        try:
            while True:
                try:
                    await self._connect(first)
                except Exception as error:
                    # Any fault of the connection: the server survives it and reconnects.
                    self._database.availability.failed(error)
                    _log.warn("the listening connection failed", error=error)
                    await trio.sleep(backoff.next_delay())
                    continue
                first = False
                backoff.reset()
                self._database.availability.answered()
                while not self._lost.is_set():
                    with trio.move_on_after(PING_EVERY):
                        await self._lost.wait()
                        break
                    await self._ping()
                self._connection = None
                self.counters.losses += 1
                _log.warn("the listening connection was lost, reconnecting")
        finally:
            connection, self._connection = self._connection, None
            if connection is not None:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + 2):
                    await self._database.call(lambda: _terminate(connection))

    async def _ping(self) -> None:
        """Close a connection that does not answer: then `_lost` is set."""
        connection, lost, availability = self._connection, self._lost, self._database.availability
        async with self._lock:
            availability.query_started()
            try:
                with trio.fail_after(_PING_TIMEOUT):
                    async with _noting_silence(availability):
                        await self._database.call(lambda: connection.execute("SELECT 1"))
            except (*DRIVER_ERRORS, trio.TooSlowError) as error:
                availability.failed(error)
                await self._drop(connection, lost)
            else:
                availability.answered()

    async def _drop(self, connection: object, lost: trio.Event) -> None:
        """Let `_keep_connected` open another connection, which listens on every known channel."""
        await self._database.call(lambda: _terminate(connection))
        lost.set()

    async def _connect(self, first: bool) -> None:
        self._lost = trio.Event()
        lost, token = self._lost, trio.lowlevel.current_trio_token()

        def on_lost() -> None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(lost.set)

        connection = await self._database.call(lambda: _open_listener(self._database, on_lost))
        self._connection = connection
        self._listening.clear()
        for channel in list(self._by_channel):
            await self._listen(channel)
        if lost.is_set():
            # A database in recovery accepts connections and refuses LISTEN: without a pause this would loop forever.
            self._connection = None
            raise ConnectionError("the listening connection ended while its channels were added")
        self._connected.set()
        if not first:
            for channel in list(self._by_channel):
                self._dispatch(channel, RESYNC)


@contextlib.asynccontextmanager
async def _noting_silence(availability: Availability) -> AsyncIterator[None]:
    """Report the database as silent while the block lasts too long."""

    async def note() -> None:
        await trio.sleep(SILENT_AFTER)
        availability.silent()

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note)
            yield
            nursery.cancel_scope.cancel()


async def _open_listener(database: DatabaseLoop, on_lost: Callable[[], None]) -> Any:
    connection = await database.connect(only_host_timeout=10, **database.connect_arguments)
    set_tcp_options(connection, database.tcp_options)
    connection.add_termination_listener(lambda _connection: on_lost())
    return connection


async def _add_listener(connection: Any, channel: str, notice: Callable[[str, str], None]) -> None:
    await connection.add_listener(channel, lambda _c, _pid, name, payload: notice(name, payload))


async def _terminate(connection: Any) -> None:
    connection.terminate()
