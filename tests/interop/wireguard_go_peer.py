"""The inside of test_wireguard_go.py: runs in a network namespace of its own, beside a real wireguard-go.

Usage: python -m tests.interop.wireguard_go_peer PATH_OF_WIREGUARD_GO. Prints what worked, one word a line.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.events import HandshakeCompleted
from coder.mesh.core.wire import icmp, ip

OURS, THEIRS = socket.inet_pton(socket.AF_INET6, "fd00::1"), socket.inet_pton(socket.AF_INET6, "fd00::2")
UAPI = Path("/var/run/wireguard/wgtest0.sock")
PATIENCE = 15.0


class Node:
    """Our device on one UDP socket."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        wall = time.time() - time.monotonic()
        self.device = Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=wall)
        self.inbox: list[bytes] = []
        self.completed = 0
        self.there = ("127.0.0.1", 51999)

    def take(self, received: Received) -> None:
        self.inbox += [packet for _, packets in received.deliveries for packet in packets]
        self.completed += sum(isinstance(event, HandshakeCompleted) for event in received.events)
        for datagram in [d for _, d in received.sends] + received.replies:
            self.socket.sendto(datagram, self.there)

    def run_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            now = time.monotonic()
            if now > deadline:
                raise SystemExit("timed out")
            wake = self.device.next_wake() or deadline
            self.socket.settimeout(max(0.001, min(wake, deadline) - now))
            try:
                datagram, source = self.socket.recvfrom(65_536)
            except TimeoutError:
                self.take(self.device.on_timer(time.monotonic()))
            else:
                self.take(self.device.receive_untrusted(datagram, source, time.monotonic()))


def configure(text: str) -> None:
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(UAPI))
        control.sendall(text.encode() + b"\n")
        answer = control.recv(4096)
    if b"errno=0" not in answer:
        raise SystemExit(f"wireguard-go refused its configuration: {answer!r}")


def start_peer(program: str, node: Node, theirs: PrivateKey, psk: bytes) -> subprocess.Popen[bytes]:
    peer = subprocess.Popen([program, "-f", "wgtest0"], stderr=subprocess.DEVNULL)
    while not UAPI.exists():
        if peer.poll() is not None:
            raise SystemExit("wireguard-go did not start")
        time.sleep(0.02)
    place = node.socket.getsockname()
    configure(
        f"set=1\nprivate_key={theirs.reveal().hex()}\nlisten_port=51999\n"
        f"public_key={node.device.local.public.hex()}\npreshared_key={psk.hex()}\n"
        f"endpoint={place[0]}:{place[1]}\nallowed_ip=fd00::1/128\n"
    )
    for command in ("address add fd00::2/64 dev wgtest0 nodad", "link set wgtest0 up", "link set lo up"):
        subprocess.run(["ip", *command.split()], check=True)
    return peer


def converse(node: Node, theirs: PrivateKey, psk: bytes) -> None:
    now = time.monotonic
    tunnel = node.device.add_peer(theirs.public, now(), allowed=[THEIRS], psk=psk)

    def ping(payload: bytes) -> None:
        packet = icmp.Message(128, 0, 1, payload).encode(OURS, THEIRS)
        for datagram in tunnel.seal([packet], now()):
            node.socket.sendto(datagram, node.there)

    def echoed(payload: bytes) -> bool:
        return any(p[6] == ip.PROTOCOL_ICMP6 and p[40] == 129 and payload in p for p in node.inbox)

    ping(b"we begin")
    node.run_until(lambda: echoed(b"we begin"))
    print("initiator")
    # Forget everything: their next packet finds no session of ours that opens it, and they have to begin.
    node.device.remove_peer(theirs.public)
    tunnel = node.device.add_peer(theirs.public, now(), allowed=[THEIRS], psk=psk)
    configure(f"set=1\npublic_key={node.device.local.public.hex()}\nremove=true\n")
    place = node.socket.getsockname()
    configure(
        f"set=1\npublic_key={node.device.local.public.hex()}\npreshared_key={psk.hex()}\n"
        f"endpoint={place[0]}:{place[1]}\nallowed_ip=fd00::1/128\n"
    )
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as inner:
        inner.sendto(b"they begin", ("fd00::1", 7))
        node.run_until(lambda: any(b"they begin" in p for p in node.inbox))
    print("responder")
    ping(b"and back")
    node.run_until(lambda: echoed(b"and back"))
    print("answered")


def main() -> None:
    node, theirs, psk = Node(), PrivateKey.generate(os.urandom), os.urandom(32)
    peer = start_peer(sys.argv[1], node, theirs, psk)
    try:
        converse(node, theirs, psk)
    finally:
        peer.terminate()
        peer.wait()


if __name__ == "__main__":
    main()
