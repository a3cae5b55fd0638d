"""Listening sockets of a server or a workspace proxy: plain and TLS."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
from collections.abc import Sequence

import trio

from coder.appproxy.http.served_certificates import tls_context
from coder.appproxy.settings import ListenerSettings
from coder.base.errors import CoderError

ClientStream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
ClientListener = trio.SocketListener | trio.SSLListener[trio.SocketStream]
BACKLOG = 4096
"""Connections that may wait to be accepted; Linux allows as many as net.core.somaxconn, 4,096 by default."""

_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence before the first probe, between probes, and the number that may go unanswered."""


async def open_listeners(config: ListenerSettings) -> list[tuple[str, ClientListener]]:
    """Bind every configured address; return pairs of URL and listener, plain HTTP first.

    Raises CoderError `address_in_use` / `bad_address` / `bad_certificate`.
    """
    opened: list[tuple[str, ClientListener]] = []
    context = tls_context(config) if config.tls_enable else None  # before a socket that a bad file would leave open
    if config.http_address:
        opened += [(url, listener) for url, listener in await _bind(config.http_address, "http")]
    if context is not None:
        for url, listener in await _bind(config.tls_address, "https"):
            opened.append((url, trio.SSLListener(listener, context, https_compatible=True)))
    return opened


async def _bind(address: str, scheme: str) -> list[tuple[str, trio.SocketListener]]:
    host, port = split_address(address)
    try:
        listeners = await trio.open_tcp_listeners(port, host=host or None, backlog=BACKLOG)
    except OSError as error:
        raise _cannot_listen(address, error) from error
    if host == "" and port == 0 and len(listeners) > 1:
        for extra in listeners[1:]:
            await extra.aclose()
        listeners = listeners[:1]
    return [(f"{scheme}://{display_address(listener.socket.getsockname())}", listener) for listener in listeners]


def bind_sockets(address: str) -> list[socket.socket]:
    """Return listening sockets like those of `open_listeners`, without an event loop: for a process that forks those
    that accept. Raises CoderError `address_in_use` / `bad_address`."""
    host, port = split_address(address)
    opened: list[socket.socket] = []
    try:
        for family, kind, number, _, where in socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                listening = socket.socket(family, kind, number)
            except OSError as error:
                if error.errno == errno.EAFNOSUPPORT:
                    continue  # a system without IPv6
                raise
            opened.append(listening)
            if sys.platform != "win32":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(where)
            listening.listen(BACKLOG)
            listening.setblocking(False)
            if host == "" and port == 0:
                break
    except OSError as error:
        for listening in opened:
            listening.close()
        raise _cannot_listen(address, error) from error
    return opened


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`. Raises CoderError `bad_address`."""
    host, _, port_text = address.rpartition(":")
    if not port_text.isdigit():
        raise CoderError("bad_address", f"{address!r} is not host:port", "Write it like 127.0.0.1:3000.")
    return host.strip("[]"), int(port_text)


def _cannot_listen(address: str, error: OSError) -> CoderError:
    if error.errno in {errno.EACCES, errno.EPERM}:
        way = "Ports below 1024 need root or CAP_NET_BIND_SERVICE. Choose another --http-address."
    elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        way = "This machine has no such address. Write it like 127.0.0.1:3000 or 0.0.0.0:3000."
    else:
        way = "Is another server running there? Choose another --http-address."
    return CoderError("address_in_use", f"cannot listen on {address}", way)


def display_address(name: Sequence[str | int]) -> str:
    """Return `host:port` of a socket's address."""
    host = f"[{name[0]}]" if ":" in str(name[0]) else name[0]
    return f"{host}:{name[1]}"


def socket_of(stream: ClientStream) -> trio.socket.SocketType:
    """Return the socket of a connection."""
    return stream.transport_stream.socket if isinstance(stream, trio.SSLStream) else stream.socket


def notice_dead_peers(stream: ClientStream) -> None:
    """Let the kernel detect dead machines without writes (quiet WebSockets)."""
    connection = socket_of(stream)
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    options += [
        (socket.IPPROTO_TCP, getattr(socket, name), _KEEPALIVE[name]) for name in _KEEPALIVE if hasattr(socket, name)
    ]
    for level, number, value in options:
        with contextlib.suppress(OSError):
            connection.setsockopt(level, number, value)
