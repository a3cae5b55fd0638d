"""Preparation of every new connection of the pool: session settings, and TCP options (libpq's `keepalives…`).

Settings are made by statements and not with the start of the connection, at which PgBouncer refuses those it does not
know.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import Any

from sqlalchemy import event

_LEVEL = socket.IPPROTO_TCP
_OPTIONS: Mapping[str, tuple[int, str]] = {
    "keepalives": (socket.SOL_SOCKET, "SO_KEEPALIVE"),
    "keepalives_idle": (_LEVEL, "TCP_KEEPIDLE"),
    "keepalives_interval": (_LEVEL, "TCP_KEEPINTVL"),
    "keepalives_count": (_LEVEL, "TCP_KEEPCNT"),
    "tcp_user_timeout": (_LEVEL, "TCP_USER_TIMEOUT"),
}


def prepare_connections(engine: Any, options: Mapping[str, int], settings: Mapping[str, str]) -> None:
    """Prepare every new connection of an engine. TCP options that the platform lacks are left out."""
    wanted = {"keepalives": 1, **options} if options else {}
    makes = ", ".join(f"set_config({_quoted(name)}, {_quoted(value)}, false)" for name, value in settings.items())

    def on_connect(connection: Any, _record: object) -> None:
        if makes:
            connection.run_async(lambda driver: driver.execute(f"SELECT {makes}"))
        if not wanted:
            return
        transport = connection.driver_connection._transport
        known = transport.get_extra_info("socket")
        if known is None or known.family not in {socket.AF_INET, socket.AF_INET6}:
            return
        # The loop's own object may lack setsockopt, so a duplicate of its descriptor sets the option for both.
        with contextlib.closing(socket.fromfd(known.fileno(), known.family, socket.SOCK_STREAM)) as sock:
            for name, value in wanted.items():
                level, constant = _OPTIONS[name]
                number = getattr(socket, constant, None)
                if number is not None and (value or name == "keepalives"):
                    sock.setsockopt(level, number, value)

    event.listen(engine, "connect", on_connect)


def _quoted(text: str) -> str:
    """Return a text as SQL, whatever `standard_conforming_strings` says."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
