"""TCP options of database connections (libpq's `keepalives…` and `tcp_user_timeout`)."""

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


def set_socket_options(engine: Any, options: Mapping[str, int]) -> None:
    """Set options on every new TCP connection of an engine. Options that the platform lacks are left out."""
    if not options:
        return
    wanted = {"keepalives": 1, **options}

    def on_connect(connection: Any, _record: object) -> None:
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
