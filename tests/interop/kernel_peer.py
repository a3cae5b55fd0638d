"""Our stack on one side of a TUN device, the Linux kernel's sockets on the other, in a network namespace of its own.

Run by test_kernel_tcp.py as `unshare --net python kernel_peer.py SCENARIO`; prints one JSON object.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))

from coder.mesh.core.stack.interface import Stack, TcpSocket, UdpSocket
from coder.mesh.core.wire.batch import TxBuf

OURS: IPv4Address | IPv6Address = IPv6Address("fd00::2")
KERNEL: IPv4Address | IPv6Address = IPv6Address("fd00::1")
FAMILY = socket.AF_INET6
PORT = 7000
SIZE = 8_000_000


def open_tun(mtu: int) -> int:
    """The device tun0, up, with the kernel's address."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x0001 | 0x1000))  # TUNSETIFF, IFF_TUN | IFF_NO_PI
    for command in (
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "set", "tun0", "mtu", str(mtu), "txqueuelen", "10000", "up"],
        ["ip", "addr", "add", f"{KERNEL}/24", "dev", "tun0", *(["nodad"] if KERNEL.version == 6 else [])],
    ):
        subprocess.run(command, check=True)
    if KERNEL.version == 6:
        await_local_route(KERNEL)
    return fd


def use_ipv4() -> None:
    """The same scenarios over IPv4."""
    global OURS, KERNEL, FAMILY
    OURS, KERNEL, FAMILY = IPv4Address("10.98.0.2"), IPv4Address("10.98.0.1"), socket.AF_INET


def await_local_route(address: IPv4Address | IPv6Address, limit: float = 60.0) -> None:
    """The kernel takes a new address in later, on a work queue; packets to it are dropped until then."""
    end = time.monotonic() + limit
    wanted = f"{address.packed.hex()} 80 "  # a route to the one address: table "local"
    while not any(line.startswith(wanted) for line in Path("/proc/net/ipv6_route").read_text().splitlines()):
        if time.monotonic() > end:
            raise TimeoutError(f"the kernel has no local route for {address}")
        time.sleep(0.01)


class Driver(threading.Thread):
    """Moves packets between the device and the stack; optionally loses, repeats and swaps them."""

    def __init__(self, harm: float, seed: int, mtu: int = 1280) -> None:
        super().__init__(daemon=True)
        self.fd = open_tun(mtu)
        self.random = Random(seed)
        self.harm = harm
        self.stack = Stack([OURS], os.urandom, mtu)
        self.txbuf = TxBuf(mtu)
        self.late: deque[bytes] = deque()
        self.calls: deque[Callable[[], None]] = deque()
        self.pipe = os.pipe()
        self.ends = False

    def call(self, function: Callable[[], None]) -> None:
        """Run something on the driver's thread."""
        self.calls.append(function)
        os.write(self.pipe[1], b"x")

    def put(self, packet: bytes) -> None:
        for copy in self.harmed(packet):
            try:
                os.write(self.fd, copy)
            except BlockingIOError:
                pass

    def harmed(self, packet: bytes) -> list[bytes]:
        """The packet, lost, doubled or held back behind the next one."""
        if not self.harm:
            return [packet]
        chance = self.random.random()
        out = [packet]
        if chance < self.harm:
            out = []
        elif chance < self.harm * 1.3:
            out = [packet, packet]
        elif chance < self.harm * 2 and not self.late:
            self.late.append(packet)
            return []
        if self.late and out:
            out.append(self.late.popleft())
        return out

    def get(self) -> list[bytes]:
        packets: list[bytes] = []
        while len(packets) < 64:
            try:
                packets += self.harmed(os.read(self.fd, 65536))
            except BlockingIOError:
                break
        return packets

    def run(self) -> None:
        while not self.ends:
            wake = self.stack.next_wake()
            delay = 0.05 if wake is None else min(max(wake - time.monotonic(), 0), 0.05)
            select.select([self.fd, self.pipe[0]], [], [], 0 if self.stack.pending else delay)
            now = time.monotonic()
            while self.calls:
                os.read(self.pipe[0], 1)
                self.calls.popleft()()
            packets = self.get()
            if packets:
                self.stack.input_batch(packets, now)
            self.stack.on_timer(now)
            while (batch := self.stack.emit(self.txbuf, now)) is not None:
                layout = self.txbuf.layout(batch.size)
                for view in layout.plain[: batch.packets]:
                    self.put(bytes(view[: 40 + (view[4] << 8 | view[5])]))
            for _, packets in self.stack.take_output(now):
                for packet in packets:
                    self.put(packet)


class Pump:
    """Our application: sends `data`, hashes what arrives, finishes, and tells when all is over."""

    def __init__(self, sock: TcpSocket, data: bytes) -> None:
        self.sock = sock
        self.data = data
        self.sent = 0
        self.hash = hashlib.sha256()
        self.over = threading.Event()
        sock.on_event = self.step

    def step(self, sock: TcpSocket) -> None:
        while sock.unread:
            self.hash.update(sock.read_nowait())
        if sock.connected and not sock.write_closed and sock.error is None:
            while self.sent < len(self.data):
                taken = sock.write_nowait(self.data[self.sent : self.sent + 65536])
                self.sent += taken
                if not taken:
                    break
            if self.sent == len(self.data):
                sock.shutdown_write()
        if sock.closed or sock.error or sock.state.value == "time-wait":
            self.over.set()


def kernel_side(sock: socket.socket, data: bytes) -> str:
    """The kernel's application: the same, with threads."""
    digest = hashlib.sha256()

    def receive() -> None:
        while piece := sock.recv(1 << 16):
            digest.update(piece)

    reader = threading.Thread(target=receive)
    reader.start()
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
    reader.join()
    sock.close()
    return digest.hexdigest()


def transfer(driver: Driver, active: bool, up: int, down: int) -> dict[str, object]:
    """`up` bytes from us to the kernel, `down` bytes back, at the same time; we or the kernel connect."""
    data_up, data_down = Random(1).randbytes(up), Random(2).randbytes(down)
    pumps: list[Pump] = []
    begun = time.monotonic()
    if active:
        server = socket.create_server((str(KERNEL), PORT), family=FAMILY)
        driver.call(
            lambda: pumps.append(Pump(driver.stack.tcp_connect(KERNEL.packed, PORT, time.monotonic()), data_up))
        )
        sock = server.accept()[0]
    else:

        def accepted(_: object) -> None:
            found = listener.accept_nowait()
            assert found is not None
            pumps.append(Pump(found, data_up))
            pumps[0].step(found)

        listener = driver.stack.tcp_listen(PORT)
        listener.on_event = accepted
        sock = socket.create_connection((str(OURS), PORT))
    got = kernel_side(sock, data_down)
    elapsed = time.monotonic() - begun
    over = pumps[0].over.wait(100)
    stats = pumps[0].sock.stats
    return {
        "up_ok": got == hashlib.sha256(data_up).hexdigest(),
        "down_ok": pumps[0].hash.hexdigest() == hashlib.sha256(data_down).hexdigest(),
        "over": over,
        "error": str(pumps[0].sock.error),
        "state": pumps[0].sock.state.value,
        "seconds": round(elapsed, 3),
        "megabytes_per_s": round((up + down) / elapsed / 1e6, 1),
        "retransmitted": stats.retransmitted,
        "timeouts": stats.timeouts,
        "mss": stats.mss,
    }


def refused(driver: Driver) -> dict[str, object]:
    """Both sides refuse at once; a held SYN is answered only when somebody decides."""
    answers: dict[str, object] = {}
    try:
        socket.create_connection((str(OURS), 9), timeout=60)
    except ConnectionRefusedError:
        answers["ours"] = True
    failed = threading.Event()

    def connect() -> None:
        sock = driver.stack.tcp_connect(KERNEL.packed, 9, time.monotonic())
        sock.on_event = lambda s: failed.set() if s.error and s.error.code == "refused" else None

    driver.call(connect)
    answers["kernel"] = failed.wait(60)
    held = threading.Event()
    pending = []
    driver.stack.set_tcp_fallback(lambda syn: (pending.append(syn), held.set())[0])
    client = socket.socket(FAMILY)
    client.setblocking(False)
    client.connect_ex((str(OURS), 4444))
    held.wait(60)
    answers["held"] = not select.select([], [client], [], 0.2)[1]
    driver.call(lambda: pending[0].accept() and None)  # type: ignore[arg-type]
    answers["accepted"] = bool(select.select([], [client], [], 60)[1]) and not client.getsockopt(
        socket.SOL_SOCKET, socket.SO_ERROR
    )
    return answers


def datagrams(driver: Driver) -> dict[str, object]:
    """UDP both ways, port unreachable, ping."""
    driver.stack.set_udp_fallback(None)
    echo = driver.stack.udp_bind(5353)

    def answer(udp: UdpSocket) -> None:
        datagram = udp.receive_nowait()
        assert datagram is not None
        udp.send_nowait(datagram.payload, datagram.source, datagram.source_port)

    echo.on_event = answer
    client = socket.socket(FAMILY, socket.SOCK_DGRAM)
    client.settimeout(60)
    client.connect((str(OURS), 5353))
    client.send(b"hello" * 200)
    answers: dict[str, object] = {"echo": client.recv(4000) == b"hello" * 200}
    client.send(b"large" * 2000)
    answers["fragments"] = client.recv(20_000) == b"large" * 2000
    other = socket.socket(FAMILY, socket.SOCK_DGRAM)
    other.settimeout(60)
    other.connect((str(OURS), 5354))
    other.send(b"x")
    try:
        other.recv(10)
    except ConnectionRefusedError:
        answers["unreachable"] = True
    replies: list[object] = []
    got = threading.Event()
    driver.stack.set_event_hook(lambda event: (replies.append(event), got.set())[0])
    driver.call(lambda: driver.stack.icmp_echo(KERNEL.packed, 7, 1, b"abc"))
    answers["kernel_answers_ping"] = got.wait(60) and type(replies[0]).__name__ == "EchoReply"
    return answers


SCENARIOS: dict[str, Callable[[], dict[str, object]]] = {
    "upload": lambda: transfer(start(), True, SIZE, 0),
    "download": lambda: transfer(start(), False, 0, SIZE),
    "both": lambda: transfer(start(), False, SIZE, SIZE),
    "both-active": lambda: transfer(start(), True, SIZE, SIZE),
    "harmed": lambda: transfer(start(0.02), True, SIZE // 8, SIZE // 8),
    "harmed-passive": lambda: transfer(start(0.05, 2), False, SIZE // 8, SIZE // 8),
    "jumbo": lambda: transfer(start(0, 3, 8900), True, SIZE, SIZE),
    "refused": lambda: refused(start()),
    "datagrams": lambda: datagrams(start()),
}


def start(harm: float = 0.0, seed: int = 1, mtu: int = 1280) -> Driver:
    driver = Driver(harm, seed, mtu)
    driver.start()
    return driver


if __name__ == "__main__":
    if "ipv4" in sys.argv:
        use_ipv4()
    print(json.dumps(SCENARIOS[sys.argv[1]]()))
