"""Forwarding of every other overlay port to the same port of this machine: dialled on loopback first, accepted only
when that worked."""

from __future__ import annotations

import socket

import trio

from coder.mesh.node import UdpFlow

DIAL_TIMEOUT = 5.0
UDP_IDLE = 120.0
"Seconds without a datagram in either direction after which a flow's local socket is closed (RFC 4787 section 4.3)."
DNS_PORT = 53
DNS_IDLE = 30.0
"Seconds of silence for DNS flows: a DNS reply arrives long before, and every query is a flow of its own."
MAX_DATAGRAM = 65_535


async def dial_loopback(port: int) -> trio.SocketStream | None:
    """Connect to 127.0.0.1:port, else [::1]:port. Returns None when nothing listens."""
    for host in ("127.0.0.1", "::1"):
        with trio.move_on_after(DIAL_TIMEOUT):
            try:
                return await trio.open_tcp_stream(host, port)
            except OSError:
                continue
    return None


async def relay_datagrams(flow: UdpFlow) -> None:
    """Relay one peer's datagrams to a UDP port of 127.0.0.1 and the replies back, until both sides are silent or the
    port refuses."""
    idle = DNS_IDLE if flow.port == DNS_PORT else UDP_IDLE
    with trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, trio.CancelScope() as silence:
        await sock.connect(("127.0.0.1", flow.port))
        silence.deadline = trio.current_time() + idle

        async def answer() -> None:
            while True:
                flow.send(await sock.recv(MAX_DATAGRAM))
                silence.deadline = trio.current_time() + idle

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                while True:
                    await sock.send(await flow.receive())
                    silence.deadline = trio.current_time() + idle
        except* OSError:
            pass  # nothing listens there (any more): the peer's next datagram retries
