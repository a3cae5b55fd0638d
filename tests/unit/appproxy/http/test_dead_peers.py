"""Keepalive probes on accepted connections: a machine that vanished is noticed without writes."""

from __future__ import annotations

import socket
import ssl
import sys

import pytest
import trio

from coder.appproxy.http.listening_sockets import notice_dead_peers


@pytest.mark.skipif(sys.platform != "linux", reason="the other options have names of their own elsewhere")
@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_kernel_probes_quiet_connections(secure: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()):
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(listener.accept()[0]))
        async with stream:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            notice_dead_peers(trio.SSLStream(stream, context, server_side=True) if secure else stream)
            assert stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            seconds = stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
            seconds += 3 * stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
            assert seconds <= 60
