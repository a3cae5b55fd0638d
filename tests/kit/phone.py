"""A phone with plain WireGuard: a bare device on a loopback socket, with the gateway as its only peer."""

from __future__ import annotations

import os
import socket
import time

import trio

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.wire import icmp, rewrite
from coder.mesh.drivers.wireguard_gateway import GatewayClient, WireguardGateway
from tests.kit.mesh import address

PHONE, ALIAS, STABLE = (address(number).packed for number in (0x50, 0x51, 0x99))
ELSEWHERE = address(0x77).packed
"""Where no client may go."""


class Phone:
    """Plain WireGuard with one peer; `packets` is what came out of the tunnel."""

    def __init__(self, gateway: WireguardGateway, own: bytes = PHONE) -> None:
        self.key = PrivateKey.generate(os.urandom)
        self.own = own
        self._hub = gateway
        self._device = Device(self.key, os.urandom, wall_offset=time.time() - trio.current_time())
        everywhere = (address(2).packed, STABLE, ELSEWHERE)
        self._tunnel = self._device.add_peer(gateway.public_key, trio.current_time(), allowed=everywhere)
        self._send, self.packets = trio.open_memory_channel[bytes](256)
        self._sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        await self._sock.bind(("127.0.0.1", 0))
        task_status.started()
        with self._sock:
            while True:
                datagram, source = await self._sock.recvfrom(65_535)
                await self._take(self._device.receive_untrusted(datagram, source, trio.current_time()))

    async def _take(self, received: Received) -> None:
        for _, packets in received.deliveries:
            for packet in packets:
                self._send.send_nowait(rewrite.trimmed(packet))
        for _, datagram in received.sends:
            await self._out([datagram])

    async def _out(self, datagrams: list[bytes]) -> None:
        for datagram in datagrams:
            await self._sock.sendto(datagram, ("127.0.0.1", self._hub.port))

    async def send(self, *packets: bytes) -> None:
        await self._out(self._tunnel.seal(list(packets), trio.current_time()))

    def config(self, hub_peers: frozenset[bytes] = frozenset({address(2).packed})) -> GatewayClient:
        return GatewayClient(self.key.public, self.own, ALIAS, hub_peers, {STABLE: address(2).packed})


def echo(destination: bytes, text: bytes, source: bytes = PHONE) -> bytes:
    return icmp.Message(icmp.ECHO_REQUEST, 0, 1, text).encode(source, destination)
