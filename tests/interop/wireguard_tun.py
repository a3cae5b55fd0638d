"""Our WireGuard behind a TUN device, so that the kernel's programs can use it; for test_wireguard_iperf.py.

Usage: python -m tests.interop.wireguard_tun PORT PEER_HOST PEER_PORT PEER_KEY_HEX SECONDS_BETWEEN_KEYS ADDRESS …
Runs in a network namespace. Prints its public key, then reads lines: `roam` (another source port from now on),
`end` (prints how many handshakes were completed).
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import time
from ipaddress import ip_interface
from typing import Any

from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.tunnel import keypairs
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.events import HandshakeCompleted
from coder.mesh.core.wire import ip4

MTU = 1420
BATCH = 64


def open_tun(addresses: list[str]) -> int:
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"wgours", 0x0001 | 0x1000))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
    subprocess.run(["ip", "link", "set", "wgours", "mtu", str(MTU), "up"], check=True)
    for address in addresses:
        extra = ["nodad"] if ":" in address else []
        subprocess.run(["ip", "address", "add", address, "dev", "wgours", *extra], check=True)
    return fd


class Gateway:
    """One peer, one device, one socket."""

    def __init__(self, port: int, peer: tuple[str, int], key: PublicKey, addresses: list[str]) -> None:
        self.tun = open_tun(addresses)
        self.peer = peer
        self.socket = self.bound(port)
        self.device = Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=time.time() - time.monotonic())
        networks = [ip_interface(address).network for address in addresses]
        theirs = [network.network_address + 2 for network in networks]
        packed = tuple(ip4.address16(address.packed) for address in theirs)
        self.tunnel = self.device.add_peer(key, time.monotonic(), allowed=packed)
        self.handshakes = 0

    @staticmethod
    def bound(port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sock.bind(("0.0.0.0", port))
        sock.setblocking(False)
        return sock

    def take(self, received: Received) -> None:
        for _, packets in received.deliveries:
            for packet in packets:
                try:
                    os.write(self.tun, packet)
                except OSError:
                    continue
        self.handshakes += sum(isinstance(event, HandshakeCompleted) for event in received.events)
        for datagram in [d for _, d in received.sends] + received.replies:
            self.send(datagram)

    def send(self, datagram: bytes) -> None:
        try:
            self.socket.sendto(datagram, self.peer)
        except OSError:
            pass

    def read_tun(self, now: float) -> None:
        packets: list[Any] = []
        try:
            while len(packets) < BATCH:
                packets.append(os.read(self.tun, 65_536))
        except BlockingIOError:
            pass
        for datagram in self.tunnel.seal(packets, now) if packets else ():
            self.send(datagram)

    def read_socket(self, now: float) -> None:
        for _ in range(BATCH):
            try:
                datagram, source = self.socket.recvfrom(65_536)
            except OSError:
                return
            self.take(self.device.receive_untrusted(datagram, source, now))
            if isinstance(self.tunnel.source, tuple):
                self.peer = self.tunnel.source  # it roams: the last place it was proved to be at

    def run(self) -> None:
        while True:
            now = time.monotonic()
            wake = self.device.next_wake()
            delay = 0.2 if wake is None else min(max(wake - now, 0.0), 0.2)
            ready, _, _ = select.select([self.tun, self.socket, sys.stdin], [], [], delay)
            now = time.monotonic()
            if self.tun in ready:
                self.read_tun(now)
            if self.socket in ready:
                self.read_socket(now)
            self.take(self.device.on_timer(now))
            if sys.stdin in ready:
                if sys.stdin.readline().strip() != "roam":
                    return
                self.socket.close()
                self.socket = self.bound(0)


def main() -> None:
    port, host, peer_port, key, seconds, *addresses = sys.argv[1:]
    keypairs.REKEY_AFTER_TIME = float(seconds)  # type: ignore[attr-defined]
    gateway = Gateway(int(port), (host, int(peer_port)), PublicKey(bytes.fromhex(key)), addresses)
    print(gateway.device.local.public.hex(), flush=True)
    gateway.run()
    print(gateway.handshakes, flush=True)


if __name__ == "__main__":
    main()
