"""New connections: the choice among several hosts, session settings, and TCP options (libpq's `keepalives…`).

Settings are made by statements and not with the start of the connection, at which PgBouncer refuses those it does not
know.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import asyncpg
from asyncpg import InterfaceError, InternalClientError
from asyncpg.exceptions import TargetServerAttributeNotMatched
from sqlalchemy import event

from coder.base.files.from_files import FromFiles
from coder.coderd.store.engine.availability import DRIVER_ERRORS, READ_ONLY, means_unavailable

HOST_TIMEOUT = 5.0
"""Seconds for each of several hosts, unless `connect_timeout` says otherwise."""
TCP_DEFAULTS: Mapping[str, int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15000,
}
"""TCP options where the connection string has none: a host that vanished is noticed within 15 s. The kernel's own
defaults take two hours for an idle connection, and a quarter of an hour for one that waits for an answer."""
_WRITABLE = "read-write"
_OUT_OF_STEP = ("in a manually started transaction", "another operation is in progress")

_LEVEL = socket.IPPROTO_TCP
_OPTIONS: Mapping[str, tuple[int, str]] = {
    "keepalives": (socket.SOL_SOCKET, "SO_KEEPALIVE"),
    "keepalives_idle": (_LEVEL, "TCP_KEEPIDLE"),
    "keepalives_interval": (_LEVEL, "TCP_KEEPINTVL"),
    "keepalives_count": (_LEVEL, "TCP_KEEPCNT"),
    "tcp_user_timeout": (_LEVEL, "TCP_USER_TIMEOUT"),
}


class Connector:
    """Opens connections as `asyncpg.connect` does, which gives all hosts together one timeout: a first host that drops
    packets would use it up. Here each host has its own, and the last one that was usable is tried first.

    With several hosts, the one that accepts writes is chosen: a standby serves no server.
    """

    def __init__(self) -> None:
        self._first = 0

    async def __call__(self, *, only_host_timeout: float = 60.0, **arguments: Any) -> Any:
        """Return a connection. `only_host_timeout` are seconds, unless `connect_timeout` says otherwise or there are
        several hosts. Raises the driver's errors; with several hosts the one that says most."""
        hosts, ports = arguments.get("host"), arguments.get("port")
        if not isinstance(hosts, list) or len(hosts) < 2:
            return await _connect({"timeout": only_host_timeout} | arguments)
        arguments = {"target_session_attrs": _WRITABLE, "timeout": HOST_TIMEOUT} | arguments
        failure: Exception = OSError("there is no host")
        for step in range(len(hosts)):
            at = (self._first + step) % len(hosts)
            port = ports[at] if isinstance(ports, list) else ports
            place = {"host": [hosts[at]]} | ({"port": port} if port is not None else {})
            try:
                connection = await _connect(arguments | place)
            except DRIVER_ERRORS as error:
                # A refusal, such as a wrong password, says more than the absence of another host.
                if not step or (_is_absence(failure) and not _is_absence(error)):
                    failure = error
            else:
                self._first = at
                return connection
        raise failure


def _is_absence(error: Exception) -> bool:
    return means_unavailable(error) and not isinstance(error, ssl.SSLError)


async def _connect(arguments: Mapping[str, Any]) -> Any:
    tls = arguments.get("ssl")
    if isinstance(tls, FromFiles):
        arguments = {**arguments, "ssl": tls.get()}
    try:
        return await asyncpg.connect(**arguments)
    except TargetServerAttributeNotMatched as error:
        # SQLAlchemy would hide which of the driver's errors it is.
        raise ConnectionError(str(error)) from error


def prepare_connections(engine: Any, options: Mapping[str, int], settings: Mapping[str, str]) -> None:
    """Prepare every new connection of an engine."""
    makes = ", ".join(f"set_config({_quoted(name)}, {_quoted(value)}, false)" for name, value in settings.items())

    def on_connect(connection: Any, _record: object) -> None:
        if makes:
            connection.run_async(lambda driver: driver.execute(f"SELECT {makes}"))
        set_tcp_options(connection.driver_connection, options)

    def on_error(context: Any) -> None:
        # The server became a standby: the pool reconnects, to the one that accepts writes.
        error = getattr(context.original_exception, "orig", context.original_exception)
        if getattr(error, "sqlstate", "") == READ_ONLY or _is_out_of_step(error.__cause__):
            context.is_disconnect = True

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "handle_error", on_error)


def _is_out_of_step(error: BaseException | None) -> bool:
    """Return whether the driver does not know the session's state, after answers that no PostgreSQL gives. Left in the
    pool, the connection would fail every later unit of work."""
    unknown = isinstance(error, InterfaceError) and any(text in str(error) for text in _OUT_OF_STEP)
    return unknown or isinstance(error, InternalClientError)


def set_tcp_options(connection: Any, options: Mapping[str, int]) -> None:
    """Set TCP options of a driver's connection, with `TCP_DEFAULTS`; those that the platform lacks are left out."""
    known = connection._transport.get_extra_info("socket")
    if known is None or known.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    # The loop's own object may lack setsockopt, so a duplicate of its descriptor sets the option for both.
    with contextlib.closing(socket.fromfd(known.fileno(), known.family, socket.SOCK_STREAM)) as sock:
        for name, value in {"keepalives": 1, **TCP_DEFAULTS, **options}.items():
            level, constant = _OPTIONS[name]
            number = getattr(socket, constant, None)
            if number is not None and (value or name == "keepalives"):
                sock.setsockopt(level, number, value)


def _quoted(text: str) -> str:
    """Return a text as SQL, whatever `standard_conforming_strings` says."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
