"""Forwarding of a local UDP port to a workspace: each local sender gets its own port there."""

from __future__ import annotations

import socket
from dataclasses import dataclass

import trio

from coder.client.link import WorkspaceLink
from coder.mesh.node import UdpPort

IDLE = 120.0
"Idle seconds after which a sender's overlay port is released (RFC 4787 section 4.3)."
MAX_DATAGRAM = 65_535
MAX_SENDERS = 256


@dataclass(slots=True)
class _Sender:
    port: UdpPort
    scope: trio.CancelScope


def open_udp(host: str, port: int) -> trio.socket.SocketType:
    """Return a bound, non-blocking UDP socket. Raise OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    plain = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            plain.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        plain.bind((host, port))
    except OSError:
        plain.close()
        raise
    return trio.socket.from_stdlib_socket(plain)


async def forward_udp(link: WorkspaceLink, local: trio.socket.SocketType, port: int) -> None:
    """Forward datagrams between `local` and the workspace's `port` until cancelled."""
    senders: dict[tuple[str, int], _Sender] = {}
    with local:
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    payload, source = await local.recvfrom(MAX_DATAGRAM)
                except OSError:
                    continue  # an earlier answer's ICMP error; the socket stays usable
                sender = senders.get(source)
                if sender is None:
                    if len(senders) >= MAX_SENDERS:
                        continue
                    sender = senders[source] = _Sender(link.node.udp_bind(), trio.CancelScope())
                    nursery.start_soon(_answers, senders, source, sender, local)
                sender.scope.deadline = trio.current_time() + IDLE
                sender.port.send(payload, link.address, port)


async def _answers(
    senders: dict[tuple[str, int], _Sender], source: tuple[str, int], sender: _Sender, local: trio.socket.SocketType
) -> None:
    try:
        with sender.scope:
            while True:
                datagram = await sender.port.receive()
                sender.scope.deadline = trio.current_time() + IDLE
                try:
                    await local.sendto(datagram.payload, source)
                except OSError:
                    continue  # the socket is closed, or the answer exceeds its limit: drop it, as UDP can
    finally:
        del senders[source]
        sender.port.close()
