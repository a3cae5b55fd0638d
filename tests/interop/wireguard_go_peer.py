"""The inside of test_wireguard_go.py: runs in a network namespace of its own, beside a real wireguard-go.

Usage: python -m tests.interop.wireguard_go_peer PATH_OF_WIREGUARD_GO [long]. Prints what worked, one word a line.
The kernel's TCP and UDP behind their interface talk to our stack behind our tunnel.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from ipaddress import IPv6Address
from pathlib import Path

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.stack.interface import Stack
from coder.mesh.core.tunnel import keypairs
from coder.mesh.core.tunnel.device import Device, Received
from coder.mesh.core.tunnel.events import HandshakeCompleted
from coder.mesh.core.wire import icmp, ip
from tests.interop.kernel_peer import await_local_route

OURS, THEIRS = socket.inet_pton(socket.AF_INET6, "fd00::1"), socket.inet_pton(socket.AF_INET6, "fd00::2")
UAPI = Path("/var/run/wireguard/wgtest0.sock")
PATIENCE = 60.0
MTU = 1420


class Node:
    """Our device on one UDP socket."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        wall = time.time() - time.monotonic()
        self.device = Device(PrivateKey.generate(os.urandom), os.urandom, wall_offset=wall)
        self.stack = Stack([OURS], os.urandom, MTU)
        self.inbox: list[bytes] = []
        self.completed = 0
        self.there = ("127.0.0.1", 51999)

    def take(self, received: Received) -> None:
        packets = [packet for _, packets in received.deliveries for packet in packets]
        self.inbox = self.inbox[-1000:] + packets
        self.stack.input_batch(packets, time.monotonic())
        self.completed += sum(isinstance(event, HandshakeCompleted) for event in received.events)
        for datagram in [d for _, d in received.sends] + received.replies:
            self.socket.sendto(datagram, self.there)

    def flush(self) -> None:
        now = time.monotonic()
        for destination, packets in self.stack.take_output(now):
            tunnel = self.device.tunnel_to(destination)
            for datagram in tunnel.seal(packets, now) if tunnel else ():
                self.socket.sendto(datagram, self.there)

    def run_until(self, done: Callable[[], bool], patience: float = PATIENCE) -> None:
        deadline = time.monotonic() + patience
        while not done():
            self.flush()
            now = time.monotonic()
            if now > deadline:
                raise SystemExit("timed out")
            wakes = [w for w in (self.device.next_wake(), self.stack.next_wake()) if w is not None]
            self.socket.settimeout(max(0.001, min([*wakes, deadline, now + 0.05]) - now))
            try:
                datagram, source = self.socket.recvfrom(65_536)
            except TimeoutError:
                self.take(self.device.on_timer(time.monotonic()))
                self.stack.on_timer(time.monotonic())
            else:
                self.take(self.device.receive_untrusted(datagram, source, time.monotonic()))

    def roam(self) -> None:
        """Another address of ours from now on."""
        self.socket.close()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))


def configure(text: str) -> None:
    with socket.socket(socket.AF_UNIX) as control:
        while control.connect_ex(str(UAPI)):
            time.sleep(0.02)  # the file is there a moment before somebody listens
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
    await_local_route(IPv6Address(THEIRS))
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


def transfer(node: Node) -> None:
    """TCP both ways between our stack and the kernel's, in one connection."""
    data = os.urandom(1 << 16) * 48
    got: list[bytes] = []
    with socket.create_server(("fd00::2", 80), family=socket.AF_INET6) as server:

        def echo() -> None:
            link, _ = server.accept()
            with link:
                while piece := link.recv(1 << 16):
                    link.sendall(piece)

        threading.Thread(target=echo, daemon=True).start()
        stream = node.stack.tcp_connect(THEIRS, 80, time.monotonic())
        written = 0

        def step() -> bool:
            nonlocal written
            if stream.connected and written < len(data):
                written += stream.write_nowait(data[written : written + (1 << 18)])
                if written == len(data):
                    stream.shutdown_write()
            while piece := stream.read_nowait():
                got.append(piece)
            return stream.eof

        node.run_until(step)
    if sha256(b"".join(got)).digest() != sha256(data).digest():
        raise SystemExit("the echo is not what was sent")
    print("tcp")


def datagrams(node: Node) -> None:
    """UDP both ways, from the largest that fits to one that needs fragments."""
    ours = node.stack.udp_bind(9)
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as theirs:
        theirs.bind(("fd00::2", 9))
        for size in (0, 1, MTU - 48, 5000):
            theirs.sendto(bytes(size), ("fd00::1", 9))
            node.run_until(lambda: ours.readable)
            arrived = ours.receive_nowait()
            if arrived is None or arrived.payload != bytes(size):
                raise SystemExit(f"a datagram of {size} bytes did not arrive as it was")
            ours.send_nowait(arrived.payload, THEIRS, 9)
            node.flush()
            theirs.settimeout(PATIENCE)
            if theirs.recv(65_536) != bytes(size):
                raise SystemExit(f"a datagram of {size} bytes did not come back")
    print("udp")


def stream_of_datagrams(node: Node, seconds: float, *, ours: bool) -> int:
    """A hundred datagrams a second one way, none of which may be lost; -> handshakes meanwhile."""
    before = node.completed
    there = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    there.bind(("fd00::2", 10))
    there.setblocking(False)
    here = node.stack.udp_bind(10)
    begin = time.monotonic()
    sent = 0
    arrived: list[int] = []

    def step() -> bool:
        nonlocal sent
        # No more at a time than waits anywhere on the way while the other side is not let run.
        while sent < min(100 * seconds, len(arrived) + 32) and time.monotonic() > begin + sent / 100:
            if ours:
                here.send_nowait(sent.to_bytes(4, "big"), THEIRS, 10)
            else:
                there.sendto(sent.to_bytes(4, "big"), ("fd00::1", 10))
            sent += 1
        while (datagram := here.receive_nowait()) is not None:
            arrived.append(int.from_bytes(datagram.payload, "big"))
        if ours:
            try:
                while True:
                    arrived.append(int.from_bytes(there.recv(100), "big"))
            except BlockingIOError:
                pass
        return len(arrived) >= 100 * seconds

    node.run_until(step, seconds + PATIENCE)
    there.close()
    here.close()
    if arrived != list(range(sent)):
        raise SystemExit("datagrams were lost or out of order while keys were renewed")
    return node.completed - before


def renew(node: Node, theirs: PrivateKey, psk: bytes) -> None:
    node.device.remove_peer(theirs.public)
    node.device.add_peer(theirs.public, time.monotonic(), allowed=[THEIRS], psk=psk)  # now we are the initiator
    keypairs.REKEY_AFTER_TIME = 1.0  # type: ignore[attr-defined]  # as initiator we renew as soon as we may, five seconds after the last handshake
    try:
        if stream_of_datagrams(node, 6.5, ours=True) < 2:
            raise SystemExit("our keys were not renewed")
    finally:
        keypairs.REKEY_AFTER_TIME = 120.0  # type: ignore[attr-defined]
    print("renewed")


def roam(node: Node, theirs: PrivateKey) -> None:
    def ask(payload: bytes) -> None:
        node.stack.icmp_echo(THEIRS, 1, 1, payload)
        node.run_until(lambda: any(payload in p and p[40] == 129 for p in node.inbox))

    node.roam()
    ask(b"from our new address")
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as inner:
        inner.sendto(b"to our new address", ("fd00::1", 7))
        node.run_until(lambda: any(b"to our new address" in p for p in node.inbox))
    configure("set=1\nlisten_port=52000\n")
    tunnel = node.device.peers[theirs.public]
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as inner:
        inner.sendto(b"from their new address", ("fd00::1", 7))
        node.run_until(lambda: any(b"from their new address" in p for p in node.inbox))
    if tunnel.source != ("127.0.0.1", 52000):
        raise SystemExit(f"their new address went unnoticed: {tunnel.source!r}")
    node.there = tunnel.source
    ask(b"to their new address")
    print("roamed")


def long(node: Node) -> None:
    """Five minutes of datagrams each way: whoever began the session renews it, twice."""
    for ours in (False, True):
        if stream_of_datagrams(node, 250.0, ours=ours) < 2:
            raise SystemExit("keys were not renewed every two minutes")
        print("long")


def main() -> None:
    node, theirs, psk = Node(), PrivateKey.generate(os.urandom), os.urandom(32)
    peer = start_peer(sys.argv[1], node, theirs, psk)
    try:
        converse(node, theirs, psk)
        transfer(node)
        datagrams(node)
        if "long" in sys.argv:
            long(node)
        renew(node, theirs, psk)
        roam(node, theirs)
    finally:
        peer.terminate()
        peer.wait()


if __name__ == "__main__":
    main()
