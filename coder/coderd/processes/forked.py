"""Code of the forked processes: a worker with its duties, the keeper of the built-in PostgreSQL, the migrations.

All of them end when the supervisor closes its end of the control socket, or orders them to.
"""

from __future__ import annotations

import errno
import faulthandler
import os
import signal
import socket
import ssl
import sys
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import trio

from coder.base import garbage
from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.base.log import get_logger
from coder.base.threads import run_trio
from coder.coderd.app import Listener, ProvisionerFactory, open_process
from coder.coderd.config.settings import ServerConfig
from coder.coderd.http.server.quart_fixes import Application
from coder.coderd.processes.control import ControlLink, Order, Report
from coder.coderd.services.foundation.database_clock import DatabaseClock
from coder.coderd.services.foundation.this_process import ThisProcess
from coder.coderd.store.engine.database import open_database
from coder.coderd.store.engine.migrate import migrate, wait_for_database, warn_of_connection_limits
from coder.coderd.store.engine.postgres import run_postgres

DUMP_SIGNAL = signal.SIGUSR1 if sys.platform != "win32" else signal.SIGTERM
"""Writes the stacks of all threads to standard error: sent to a process that is killed because it stands still."""
SYSTEM_REFUSED = "system_refused"
"""Code of the failure of a process that the system refused something: another one may get it later."""
_REFUSALS = frozenset(
    getattr(errno, name)
    for name in ("EACCES", "EAGAIN", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EPERM", "EROFS")
    if hasattr(errno, name)
)
_log = get_logger("processes")


@dataclass(frozen=True, slots=True)
class BoundSocket:
    """Listening socket of the server, shared by all processes."""

    url: str
    address: str
    "Setting that it was bound for."
    socket: socket.socket
    tls: ssl.SSLContext | None = None


def main_of_fork(name: str, control: socket.socket, run: Callable[[ControlLink], Awaitable[None]]) -> int:
    """Run a forked process to its end and return its exit status."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, _ignore)  # the supervisor's to handle; not SIG_IGN, which programs would inherit
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if sys.platform != "win32":
        faulthandler.register(DUMP_SIGNAL, all_threads=True)
    _set_title(name)
    link = None
    try:
        link = ControlLink(control)
        run_trio(run, link)
    except CoderError as error:
        if link is not None:
            link.send(Report("failed", code=error.code, message=error.message, hint=error.hint or ""))
        return 1
    except OSError as error:
        if link is not None and error.errno in _REFUSALS:
            where = f"{error.filename}: " if error.filename else ""
            link.send(Report("failed", code=SYSTEM_REFUSED, message=f"{where}{error.strerror}"))
            return 1
        return _report_defect(name, error)
    except BaseException as error:
        return _report_defect(name, error)
    return 0


def _report_defect(name: str, error: BaseException) -> int:
    _log.error("a process of the server failed", process=name, error=error)
    traceback.print_exception(error)
    return 1


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass


def _set_title(name: str) -> None:
    """Set the name that `ps` and `top` show, where the system has files for that."""
    try:
        Path("/proc/self/comm").write_text(f"coder {name}"[:15])
    except OSError:
        pass


def listeners_of(sockets: list[BoundSocket]) -> list[tuple[str, Listener]]:
    """Return URL and trio's listener of each socket."""
    results: list[tuple[str, Listener]] = []
    for bound in sockets:
        if bound.tls is None and bound.address.startswith("https:"):
            continue  # of a former program, whose certificates cannot be used any more: never served without TLS
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(bound.socket.dup()))
        if bound.tls is None:
            results.append((bound.url, listener))
        else:
            results.append((bound.url, trio.SSLListener(listener, bound.tls, https_compatible=True)))
    return results


async def run_worker(
    link: ControlLink,
    config: ServerConfig,
    database_url: str,
    sockets: list[BoundSocket],
    factory: ProvisionerFactory | None,
    process: ThisProcess,
    connections: int,
    application: Application,
) -> None:
    """Run a process with duties until it is told to stop."""

    def apply(order: Order) -> None:
        process.update(order.living, order.lost, order.incidents, order.restarts)

    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.follow, apply)
            nursery.start_soon(link.beat)
            listeners = listeners_of(sockets)
            async with open_process(
                config,
                database_url,
                listeners,
                factory,
                DatabaseClock(),
                process,
                migrates=False,
                connections=connections,
                application=application,
            ) as server:
                garbage.settle()
                link.send(Report("ready", access_url=server.access_url))
                await _wait_until_stopped(link, process)
            nursery.cancel_scope.cancel()


async def _wait_until_stopped(link: ControlLink, process: ThisProcess) -> None:
    # Ctrl-C reaches all processes of a terminal, and the supervisor's SIGTERM follows: the second signal, which arrives
    # after the receiver has restored what was before, must not kill a process that drains.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignore)

    async def wait_signal() -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                nursery.cancel_scope.cancel()
                return

    async def wait_retired() -> None:
        await link.retire_requested.wait()
        await process.idle.wait()
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_signal)
        nursery.start_soon(wait_retired)
        await link.stop_requested.wait()
        nursery.cancel_scope.cancel()


async def run_keeper(link: ControlLink, config: ServerConfig) -> None:
    """Run the built-in PostgreSQL until the supervisor orders to stop, after all workers. Signals to the group of
    processes do not end it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _ignore)
    with single_failure():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(link.follow, lambda _: None)
            nursery.start_soon(link.beat)
            async with run_postgres(
                config.data_path, bin_dir=config.postgres_bin_dir, ephemeral=config.ephemeral
            ) as url:
                link.send(Report("database", database_url=url))
                await link.stop_requested.wait()
            nursery.cancel_scope.cancel()


async def run_migrations(link: ControlLink, database_url: str, connections: int) -> None:
    """Wait for the database and bring its schema up to date; then end. The processes use so many connections."""
    async with open_database(database_url, pool_size=1) as database:
        await wait_for_database(database)
        await migrate(database)
        await warn_of_connection_limits(database, connections)
    link.send(Report("ready"))


def exit_now(status: int) -> None:
    """End a forked process without running what the supervisor registered for its own end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(status)
