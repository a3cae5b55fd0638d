"""Restart of the built-in PostgreSQL when it dies while its server runs: the OOM killer, `kill -9`.

PostgreSQL itself replaces backends that were killed, but not its first process, the postmaster. Several failures in a
row end the server: then its service manager starts everything from the beginning. Not so when the disk is full: another
start would fail as well, and the server still relays its sessions.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import trio

from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.coderd.store.engine.postgres_cluster import Cluster
from coder.coderd.store.engine.postgres_process import (
    RunningPostgres,
    interrupt,
    is_stopping,
    last_problem,
    start,
    stop,
    wait_until_ended,
)

_log = get_logger("postgres")
ROOM = 32 << 20
"""Bytes that a starting PostgreSQL needs: two segments of its log."""
TRIES = 5
"""Starts in a row, without `STEADY` between them, after which the server exits."""
STEADY = 60.0
"""Seconds after which a running PostgreSQL counts as started."""
FIRST_REST, LONGEST_REST = 1.0, 15.0
"""Seconds before the second try, and maximum before a later one; the first is immediate."""
STATE_EVERY = 2.0
"""Seconds between looks at what PostgreSQL says about its state."""
_RECOVERY_TIMEOUT = 600.0
"""Seconds for crash recovery. Longer than at the first start: an interrupted recovery begins at the same position."""
_LEAVE_TIMEOUT = 5.0


def is_disk_full(folder: Path) -> bool:
    """Return whether PostgreSQL cannot start for want of room."""
    try:
        return shutil.disk_usage(folder).free < ROOM
    except OSError:
        return False


class PostgresSupervisor:
    """Supervisor of one PostgreSQL from its first start to its stop."""

    def __init__(self, cluster: Cluster, programs: Path, durable: bool) -> None:
        self._cluster, self._programs, self._durable = cluster, programs, durable
        self._running: RunningPostgres | None = None

    async def start(self) -> None:
        """Start it for the first time. Raises CoderError `postgres_failed`."""
        self._running = await start(self._cluster, self._programs, self._durable)

    async def keep_running(self) -> None:
        """Restart it until cancelled. Raises CoderError `postgres_failed` when PostgreSQL cannot be restarted."""
        backoff, failures = Backoff(FIRST_REST, LONGEST_REST), 0
        while self._running is not None:
            began = trio.current_time()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._finish_shutdowns, self._running)
                how = await wait_until_ended(self._running)
                nursery.cancel_scope.cancel()
            _log.error("PostgreSQL ended by itself and is restarted", pid=self._running.pid, how=how)
            self._running = None
            if trio.current_time() - began >= STEADY:
                failures = 0
                backoff.reset()
            while self._running is None:
                if failures >= TRIES and not is_disk_full(self._cluster.data):
                    raise CoderError(
                        "postgres_failed",
                        f"PostgreSQL ended ({how}) and {TRIES} tries to start it again failed: "
                        f"{last_problem(self._cluster)}",
                        f"Its log is {self._cluster.root / 'postgres.log'}.",
                    )
                if failures:
                    await trio.sleep(backoff.next_delay())
                failures += 1
                await self._try_again(failures)

    async def _finish_shutdowns(self, running: RunningPostgres) -> None:
        """Hurry a shutdown that another program began, such as a service manager's SIGTERM to every process: PostgreSQL
        would wait for its clients to leave, and refuse new ones, for as long as our pool keeps its connections."""
        while True:
            await trio.sleep(STATE_EVERY)
            if is_stopping(self._cluster, running):
                _log.warn("another program stops PostgreSQL: it is stopped at once, to be started again")
                interrupt(running)
                return

    async def _try_again(self, number: int) -> None:
        try:
            self._running = await start(
                self._cluster, self._programs, self._durable, timeout=_RECOVERY_TIMEOUT, leave_timeout=_LEAVE_TIMEOUT
            )
        except (CoderError, OSError) as error:
            _log.error("PostgreSQL could not be started again", try_number=number, error=error)
        else:
            _log.info("PostgreSQL runs again", pid=self._running.pid, try_number=number)

    async def stop(self) -> None:
        """Stop it cleanly, if it runs."""
        if self._running is not None:
            await stop(self._running)
