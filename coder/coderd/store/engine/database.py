"""The one bridge from trio to Postgres: an asyncio loop in a thread of its own, SQLAlchemy's engine.

`Database.run(fn, *args)` is one crossing and one transaction: `fn(tx, *args)` must be pure database work, because it
runs on the other loop. Nothing else in the program touches asyncio or an engine.

A thread instead of trio-asyncio: the selector loop under trio needs several turns a round trip (9.4 ms median under
load against 1.2 ms here), and uvloop, which halves the cost of a query, can only live in its own thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeAlias, TypeVar

import msgspec
import outcome
import trio
from sqlalchemy import QueuePool, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.coderd.store.access.auth_changes import take_mark, watch_statements
from coder.coderd.store.engine.availability import DRIVER_ERRORS, Availability, DatabaseAwayError, means_temporary
from coder.coderd.store.engine.connection_string import parse_connection_string
from coder.coderd.store.engine.listening import Listeners, PgListening, PgNotificationCounters
from coder.coderd.store.engine.new_connections import Connector, prepare_connections
from coder.coderd.store.engine.sessions import extend, limited, watch_progress

T = TypeVar("T")
P = ParamSpec("P")

Tx: TypeAlias = AsyncConnection
"""Open transaction; the first argument of every function of the store."""


_log = get_logger("database")
_RETRYABLE = {"40001", "40P01"}  # serialization_failure, deadlock_detected
_RUN_TRIES = 5
_SETTINGS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "default_transaction_isolation": "read committed",
    "TimeZone": "UTC",
    "standard_conforming_strings": "on",
}
"""Settings of every session. Generic plans: our lookups are by key, and planning the list of workspaces costs more than
running it. The last three may differ for the account or the database, for other programs: locks are taken so that the
next statement sees the latest commit, and days and texts in SQL are meant as here."""
_ASK_AGAIN = 0.2
"""Seconds between two questions what became of a transaction."""
_patience: ContextVar[float] = ContextVar("settling_doubts", default=0.0)


class LoopThread:
    """Asyncio loop in a daemon thread; `call` awaits its coroutines from trio."""

    def __init__(self) -> None:
        self._ready = threading.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._main, name="database", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        """Stop the loop; blocks until its last callbacks have run (microseconds when idle)."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            raise CoderError("database_closed", "the database is not open")
        return self.loop

    def _main(self) -> None:
        loop = _new_loop()
        self.loop = loop
        asyncio.set_event_loop(loop)
        loop.call_soon(self._ready.set)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            asyncio.set_event_loop(None)
            loop.close()

    async def call(self, make: Callable[[], Coroutine[None, None, T]]) -> T:
        """Run `make()` on the loop. A cancelled caller cancels the coroutine and waits for its end."""
        await trio.lowlevel.checkpoint_if_cancelled()
        loop, token, task = self._started(), trio.lowlevel.current_trio_token(), trio.lowlevel.current_task()
        state: _Crossing[T] = _Crossing()

        def start() -> None:
            try:
                state.task = loop.create_task(make())
            except Exception as error:
                deliver(outcome.Error(error))  # otherwise the caller would wait forever
            else:
                state.task.add_done_callback(finished)

        def finished(done: asyncio.Task[T]) -> None:
            deliver(outcome.capture(done.result))

        def deliver(result: outcome.Outcome[T]) -> None:
            try:
                token.run_sync_soon(trio.lowlevel.reschedule, task, outcome.Value(result))
            except trio.RunFinishedError:
                pass  # the program ended; there is no waiting caller

        def abort(raise_cancel: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            state.raise_cancel = raise_cancel
            loop.call_soon_threadsafe(lambda: state.task.cancel() if state.task else None)
            return trio.lowlevel.Abort.FAILED

        loop.call_soon_threadsafe(start)
        result = await trio.lowlevel.wait_task_rescheduled(abort)
        if isinstance(result, outcome.Error) and isinstance(result.error, asyncio.CancelledError):
            if state.raise_cancel is not None:
                state.raise_cancel()
            raise CoderError("database_closed", "the database was closed while a query was running")
        try:
            return result.unwrap()  # type: ignore[no-any-return]
        finally:
            # An error's traceback holds this frame, so this frame must not hold the error.
            state.task = None
            del result


class _Crossing(Generic[T]):
    __slots__ = ("raise_cancel", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[T] | None = None
        self.raise_cancel: Callable[[], None] | None = None


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # no build for this platform: correct, only slower
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


@dataclass(frozen=True, slots=True)
class PoolState:
    """Connections of the pool: the limit and the current number."""

    limit: int
    in_use: int
    idle: int


def _with_password_in_thread(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments whose password, if it is read or signed for each connection, does not block other work."""
    password = arguments.get("password")
    return {**arguments, "password": lambda: asyncio.to_thread(password)} if callable(password) else arguments


class Database:
    """Pool of at most `pool_size` connections to one Postgres database, and one that listens. Created by
    `open_database`."""

    def __init__(
        self, url: str, *, pool_size: int = 10, idle: int | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        connection = parse_connection_string(url)
        arguments = _with_password_in_thread(connection.arguments())
        self.connect_arguments = arguments
        """Keyword arguments of `connect`."""
        self.connect = Connector()
        self.session_settings = connection.session_settings()
        """Settings of the URL for each session, such as `search_path`; those of `connect` lack them."""
        self.tcp_options: Mapping[str, int] = connection.socket_options()
        self._thread = LoopThread()
        # Connections above the number kept idle are opened for a burst and closed after it; 0 would mean no limit
        # there.
        pool_size = max(pool_size, 1)
        self._size_limit = pool_size
        kept = min(max(idle, 1), pool_size) if idle is not None else pool_size
        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            pool_size=kept,
            # A unit of work runs on this loop and cannot request a second connection, so a single one is enough for all
            # to finish; they only wait longer.
            max_overflow=pool_size - kept,
            pool_timeout=30,
            hide_parameters=True,  # errors are logged; hashes and addresses must not be
            # Unnamed prepared statements would be planned each time; the cache below is per connection.
            connect_args={
                **arguments,
                "async_creator_fn": self.connect,
                "prepared_statement_cache_size": 500,
            },
            json_deserializer=msgspec.json.decode,  # five times as fast as the standard library's
        )
        # Shares the pool: a single read needs neither BEGIN nor ROLLBACK.
        self._readers = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._listeners: Listeners | None = None
        self.availability = Availability(now)
        """Availability of the database, from the results of the work on it."""
        self.observers: list[Callable[[str], contextlib.AbstractContextManager[None]]] = []
        """Context managers around each unit of work, for traces and metrics; they receive the work's name."""
        self.identity_generation = 0
        """Generation of identities and permissions; it grows with every change, before the author of the change is
        notified."""
        watch_statements(self._engine.sync_engine)
        watch_progress(self._engine.sync_engine)
        prepare_connections(self._engine.sync_engine, self.tcp_options, {**_SETTINGS, **self.session_settings})

    async def run(self, fn: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one transaction: commit when `fn(tx, …)` returns, roll back when it raises or the caller is cancelled.

        A deadlock or a serialization failure runs `fn` again, so it must not keep state outside `tx`. Raises
        DatabaseAwayError; `in_doubt` tells whether the commit may have taken effect. Within `settling_doubts` it waits
        for the database to tell.
        """
        progress = _Progress()
        patience, results = _patience.get(), list[tuple[T, TransactionId]]()

        async def unit() -> T:
            progress.commits = wrote_identity = False
            results.clear()
            try:
                async with self._engine.begin() as tx:
                    result = await fn(tx, *args, **kwargs)
                    if patience:
                        results.append((result, await transaction_id(tx)))
                    wrote_identity = take_mark(tx.sync_connection)
                    progress.commits = True
                    extend()
            finally:  # also without the answer to the commit, which may have taken effect
                self.identity_generation += wrote_identity
            return result

        try:
            return await self._cross(fn, unit, progress)
        except DatabaseAwayError as error:
            if not error.in_doubt or not results:
                raise
            fate = await self._settle(results[0][1], patience)
            if fate == "committed":
                return results[0][0]
            if fate == "aborted":
                raise DatabaseAwayError(error.reason) from None
            raise

    async def _settle(self, known: TransactionId, seconds: float) -> Fate:
        """Return what became of a transaction; unknown when the database does not tell in time."""
        with trio.move_on_after(seconds):
            while True:
                fate: Fate = "in progress"
                with contextlib.suppress(DatabaseAwayError):
                    fate = await self.read(fate_of, known)
                if fate != "in progress":
                    return fate
                await trio.sleep(_ASK_AGAIN)
        return "unknown"

    @property
    def is_listening(self) -> bool:
        """Return whether notices arrive at the moment."""
        return self._listeners is not None and self._listeners.is_connected

    def pool(self) -> PoolState:
        """Return the state of the pool, for metrics; does not wait."""
        pool = self._engine.sync_engine.pool
        in_use, idle = (pool.checkedout(), pool.checkedin()) if isinstance(pool, QueuePool) else (0, 0)
        return PoolState(self._size_limit, in_use, idle)

    def notices(self) -> PgListening:
        """Return the state of listening, for metrics."""
        return self._listeners.state() if self._listeners else PgListening(False, 0, 0, PgNotificationCounters())

    async def read(self, fn: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read, like `run`: every statement sees the latest commit, without locks or BEGIN."""

        async def unit() -> T:
            async with self._readers.connect() as tx:
                return await fn(tx, *args, **kwargs)

        return await self._cross(fn, unit, _Progress())

    async def _cross(
        self,
        fn: Callable[Concatenate[Tx, P], Awaitable[T]],
        unit: Callable[[], Coroutine[None, None, T]],
        progress: _Progress,
    ) -> T:
        with contextlib.ExitStack() as surrounding:
            for observe in self.observers:
                surrounding.enter_context(observe(getattr(fn, "__name__", "work")))
            try:
                result = await self._thread.call(lambda: _retried(unit, progress))
            except DRIVER_ERRORS as error:
                if not means_temporary(error):
                    raise
                self.availability.failed(error)
                raise DatabaseAwayError(error, in_doubt=progress.is_in_doubt(error)) from None
        self.availability.answered()
        return result

    @contextlib.asynccontextmanager
    async def listen(self, *channels: str) -> AsyncIterator[trio.MemoryReceiveChannel[tuple[str, str]]]:
        """Receive `(channel, payload)` of every NOTIFY on `channels` from now on.

        After a reconnect each channel receives `(channel, RESYNC)`. A reader that falls 1000 notices behind loses the
        oldest and receives RESYNC instead.
        """
        if self._listeners is None:
            raise CoderError("database_closed", "the database is not open")
        subscription = await self._listeners.subscribe(channels)
        try:
            yield subscription.receive
        finally:
            self._listeners.unsubscribe(subscription)

    async def call(self, make: Callable[[], Coroutine[None, None, T]]) -> T:
        """Run a coroutine on the database's loop; for the store's own use (migrations)."""
        return await self._thread.call(make)

    @property
    def engine(self) -> AsyncEngine:
        """Return the engine itself, for migrations only."""
        return self._engine

    async def _close(self) -> None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
            await self._thread.call(self._engine.dispose)
        self._thread.stop()


async def let_others_run() -> None:
    """Yield one turn to other work on the database's loop."""
    await asyncio.sleep(0)


@contextlib.contextmanager
def settling_doubts(seconds: float) -> Iterator[None]:
    """When the answer to a commit is lost within the block, wait so long for the database to tell what became of it.

    It costs each transaction a statement.
    """
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


class _Progress:
    """How far a unit of work has come."""

    __slots__ = ("commits",)

    def __init__(self) -> None:
        self.commits = False
        """Whether the transaction's end was sent."""

    def is_in_doubt(self, error: Exception) -> bool:
        """Return whether the transaction may have taken effect although it failed with this error: the answer to its
        commit was lost. An answered refusal has rolled it back."""
        return self.commits and (not isinstance(error, DBAPIError) or error.connection_invalidated)


async def _retried(unit: Callable[[], Coroutine[None, None, T]], progress: _Progress) -> T:
    async with limited():
        for attempt in range(_RUN_TRIES):
            try:
                return await unit()
            except DBAPIError as error:
                again = getattr(error.orig, "sqlstate", None) in _RETRYABLE
                # A pooled connection whose server is lost fails on first use; the pool then drops the rest.
                again = again or (error.connection_invalidated and attempt == 0)
                # A commit whose answer was lost may have taken effect: a repetition would write twice.
                if not again or attempt == _RUN_TRIES - 1 or progress.is_in_doubt(error):
                    raise
    raise AssertionError("unreachable")


@contextlib.asynccontextmanager
async def open_database(
    url: str, *, pool_size: int = 10, idle: int | None = None, now: Callable[[], float] = time.monotonic
) -> AsyncIterator[Database]:
    """Open the database for the length of the block. Connects lazily; `migrate` checks that it is usable."""
    database = Database(url, pool_size=pool_size, idle=idle, now=now)
    database._thread.start()
    try:
        with single_failure():
            async with trio.open_nursery() as nursery:
                database._listeners = Listeners(database, nursery)
                yield database
                nursery.cancel_scope.cancel()
    finally:
        await database._close()


Fate: TypeAlias = Literal["committed", "aborted", "in progress", "unknown"]

_NOT_ASSIGNED, _MISSING_RIGHT = "22023", "42501"
"""SQLSTATE of a transaction id that the server has not assigned yet, and of a right that is missing."""
_ID = text("SELECT pg_current_xact_id_if_assigned()::text, pg_postmaster_start_time(), now()")


@dataclass(frozen=True, slots=True)
class TransactionId:
    """Id of a transaction, and the server that assigned it."""

    number: str | None
    """None for a transaction that has written no row."""
    server_started: datetime
    began: datetime


async def transaction_id(tx: Tx) -> TransactionId:
    """Return the id of this transaction, for `fate_of` on any later connection."""
    number, server_started, began = (await tx.execute(_ID)).one()
    return TransactionId(number, server_started, began)


async def fate_of(tx: Tx, known: TransactionId) -> Fate:
    """Return what became of a recent transaction. Raises an error that means an outage.

    In progress also on a standby, which may not have received the commit yet.

    Unknown: the server has removed the status or refuses to tell it, or another server took over and has assigned the
    same id again, which a standby does that had not received the transaction.
    """
    if known.number is None:
        return "aborted"  # it may be repeated: at most it has notified
    query = text(
        "SELECT CASE WHEN pg_is_in_recovery() THEN 'in progress'"
        " ELSE pg_xact_status(CAST(CAST(:id AS text) AS xid8)) END, pg_postmaster_start_time()"
    )
    try:
        fate, server_started = (await tx.execute(query, {"id": known.number})).one()
    except DBAPIError as error:
        sqlstate = getattr(error.orig, "sqlstate", None)
        # A right on the function that is missing here is not the right to connect, whose grant would be waited for.
        if means_temporary(error) and sqlstate != _MISSING_RIGHT:
            raise
        if sqlstate == _NOT_ASSIGNED:
            return "aborted"  # the standby that is the primary now had not received it
        _log.error("the database does not tell whether a transaction was committed", error=error)
        return "unknown"
    # A server that was started after the transaction is the same one, restarted. One that ran beside it was a standby.
    is_other = server_started != known.server_started and server_started < known.began
    if fate == "committed" and is_other:
        return "unknown"
    return fate or "unknown"
