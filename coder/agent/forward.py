"""Any other overlay port is a port of this machine: dialled on loopback first, answered only when that worked."""

from __future__ import annotations

import trio

DIAL_TIMEOUT = 5.0


async def dial_loopback(port: int) -> trio.SocketStream | None:
    """A connection to 127.0.0.1:port, else [::1]:port; None when nothing listens."""
    for host in ("127.0.0.1", "::1"):
        with trio.move_on_after(DIAL_TIMEOUT):
            try:
                return await trio.open_tcp_stream(host, port)
            except OSError:
                continue
    return None
