"""The rare moments of TCP with the Linux kernel as the other side: run by test_kernel_tcp.py like kernel_peer.py.

Usage: unshare --net python -m tests.interop.kernel_corners. Prints one JSON object: what was tried -> whether it held.
"""

from __future__ import annotations

import hashlib
import json
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

from coder.mesh.core.stack.interface import TcpSocket
from coder.mesh.core.stack.tcp.sequence import MASK
from coder.mesh.core.wire import ip, tcp
from tests.interop.kernel_peer import KERNEL, OURS, Driver, Pump, kernel_side

PATIENCE = 60.0


class Corners(Driver):
    """A driver that can hold packets back, mark them, and remembers the last of each direction."""

    def __init__(self) -> None:
        super().__init__(0.0, 1)
        self.holds = self.marks = False
        self.held_in: list[bytes] = []
        self.held_out: list[bytes] = []
        self.seen_in: list[bytes] = []
        self.seen_out: list[bytes] = []

    def put(self, packet: bytes) -> None:
        self.seen_out = [*self.seen_out[-99:], packet]
        if self.holds:
            self.held_out.append(packet)
        else:
            super().put(self.marked(packet))

    def get(self) -> list[bytes]:
        packets = super().get()
        self.seen_in = [*self.seen_in[-99:], *packets]
        if self.holds:
            self.held_in += packets
            return []
        return [self.marked(packet) for packet in packets]

    def marked(self, packet: bytes) -> bytes:
        """With both ECN bits set: congestion experienced."""
        return packet[:1] + bytes((packet[1] | 0x30,)) + packet[2:] if self.marks else packet

    def release(self) -> None:
        """Let what was held go on, all at once."""

        def go() -> None:
            self.holds = False
            for packet in self.held_out:
                Driver.put(self, packet)
            self.stack.input_batch(self.held_in, time.monotonic())
            self.held_in, self.held_out = [], []

        self.call(go)

    def do(self, function: Callable[[], Any]) -> Any:
        """Run on the driver's thread and wait for the result."""
        done, results = threading.Event(), []
        self.call(lambda: (results.append(function()), done.set())[0])
        assert done.wait(PATIENCE)
        return results[0]


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"never: {what}")
        time.sleep(0.005)


def meet(driver: Corners, port: int, receive_buffer: int = 0) -> tuple[socket.socket, TcpSocket]:
    """A connection the kernel opened to a port of ours: both ends."""
    listener = driver.do(lambda: driver.stack.tcp_listen(port))
    client = socket.socket(socket.AF_INET6)
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(PATIENCE)
    client.connect((str(OURS), port))
    found: list[TcpSocket] = []
    until(lambda: found or found.extend(filter(None, [driver.do(listener.accept_nowait)])), "accepted")
    return client, found[0]


def converse(driver: Corners, kernel: socket.socket, ours: TcpSocket) -> bool:
    """A word each way."""
    kernel.sendall(b"there")
    until(lambda: ours.unread >= 5, "their word")
    if driver.do(ours.read_nowait) != b"there":
        return False
    driver.do(lambda: ours.write_nowait(b"back"))
    return kernel.recv(10) == b"back"


def simultaneous(driver: Corners) -> dict[str, bool]:
    """SYNs cross, later FINs."""
    driver.holds = True
    kernel = socket.socket(socket.AF_INET6)
    kernel.bind((str(KERNEL), 7100))
    kernel.setblocking(False)
    kernel.connect_ex((str(OURS), 7200))
    until(lambda: driver.held_in, "the kernel's SYN")
    ours: TcpSocket = driver.do(
        lambda: driver.stack.tcp_connect(KERNEL.packed, 7100, time.monotonic(), source_port=7200)
    )
    until(lambda: driver.held_out, "our SYN")
    driver.release()
    kernel.settimeout(PATIENCE)
    until(lambda: ours.connected and select.select([], [kernel], [], 0)[1], "connected")
    answers = {"simultaneous open": converse(driver, kernel, ours)}
    driver.do(lambda: setattr(driver, "holds", True))
    kernel.shutdown(socket.SHUT_WR)
    driver.do(ours.shutdown_write)
    until(lambda: driver.held_in and driver.held_out, "both FINs")
    driver.release()
    until(lambda: ours.state.value == "time-wait" or ours.error, "time-wait")
    answers["simultaneous close"] = kernel.recv(10) == b"" and ours.error is None
    kernel.close()
    return answers


def zero_windows(driver: Corners) -> dict[str, bool]:
    """Either side stops reading for longer than a probe takes, then reads everything."""
    data = Random(5).randbytes(400_000)
    kernel, ours = meet(driver, 7301, receive_buffer=8192)
    pump = Pump(ours, data)
    driver.do(lambda: pump.step(ours))
    until(lambda: ours.sender.snd_wnd == 0, "the kernel's window closed")
    time.sleep(0.6)
    waited = ours.sender.snd_wnd == 0 and ours.error is None
    got = kernel_side(kernel, b"")
    answers = {"their zero window": waited and got == hashlib.sha256(data).hexdigest()}

    kernel, ours = meet(driver, 7302)
    kernel.setblocking(False)
    sent, digest = 0, hashlib.sha256()
    receiver, segment = ours.receiver, 1280
    # Until our window takes no segment and the kernel's buffer is full; a driver that is not let run takes none, too.
    while (writable := select.select([], [kernel], [], 0.3)[1]) or receiver.rcv_adv - receiver.rx.next >= segment:
        count = kernel.send(data[: 1 << 16]) if writable else 0
        digest.update(data[:count])
        sent += count
    stopped = ours.unread  # all that our window took; the rest waits in the kernel, which probes
    time.sleep(0.6)
    kernel.shutdown(socket.SHUT_WR)
    read = hashlib.sha256()
    while not ours.eof:
        read.update(driver.do(ours.read_nowait))
    answers["our zero window"] = ours.error is None and 0 < stopped < sent and read.digest() == digest.digest()
    kernel.close()
    return answers


def keepalives(driver: Corners) -> Callable[[], dict[str, bool]]:
    """Begin two silent connections; the answer is known after a while."""
    theirs, passive = meet(driver, 7401)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Dead after five seconds unless we answer; a driver that waits for the processor may be late by less.
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 4)):
        theirs.setsockopt(socket.IPPROTO_TCP, option, value)
    kernel, active = meet(driver, 7402)
    driver.do(lambda: active.set_keepalive(0.6, 0.6, 1))  # Linux answers such probes every half second at most
    began = time.monotonic()

    def ended() -> dict[str, bool]:
        time.sleep(max(0.0, began + 6.0 - time.monotonic()))
        answers = {
            "their keepalives": converse(driver, theirs, passive),
            "our keepalives": active.error is None and converse(driver, kernel, active),
        }
        theirs.close()
        kernel.close()
        return answers

    return ended


def challenges(driver: Corners) -> dict[str, bool]:
    """RFC 5961: a reset and a SYN that only lie in the window are answered by an acknowledgement, and nothing ends."""
    kernel, ours = meet(driver, 7501)
    their_port = kernel.getsockname()[1]
    reset = tcp.Segment(their_port, 7501, (ours.receiver.rx.next + 10) & MASK, 0, tcp.RST, 0)
    packet = whole(KERNEL.packed, OURS.packed, reset)
    before = len(driver.seen_out)
    driver.do(lambda: (driver.seen_out.clear(), driver.stack.input_batch([packet], time.monotonic())))
    until(lambda: between(driver.seen_out, 7501), f"our challenge ({before})")
    flags = between(driver.seen_out, 7501)[-1].flags
    answers = {"our challenge": flags == tcp.ACK and converse(driver, kernel, ours)}
    syn = tcp.Segment(7501, their_port, (ours.sender.snd_nxt + 10) & MASK, 0, tcp.SYN, 1000)
    driver.do(lambda: (driver.seen_in.clear(), Driver.put(driver, whole(OURS.packed, KERNEL.packed, syn))))
    until(lambda: between(driver.seen_in, 7501), "the kernel's challenge")
    flags = between(driver.seen_in, 7501)[0].flags
    answers["their challenge"] = flags == tcp.ACK and converse(driver, kernel, ours)
    kernel.close()
    return answers


def between(packets: list[bytes], port: int) -> list[tcp.Segment]:
    """The segments of the connection with this port: others of the namespace speak meanwhile."""
    segments = [tcp.parse_untrusted(packet, 40) for packet in packets if packet[6] == ip.PROTOCOL_TCP]
    return [segment for segment in segments if port in (segment.source_port, segment.port)]


def whole(source: bytes, destination: bytes, segment: tcp.Segment) -> bytes:
    total = ip.checksum(ip.PROTOCOL_TCP, source, destination, segment.encode())
    body = segment.encode(total)
    return ip.header(ip.PROTOCOL_TCP, source, destination, len(body)) + body


def congestion_marks(driver: Corners) -> dict[str, bool]:
    """The kernel asks for ECN, we do not agree; marks that come all the same hurt nobody."""
    subprocess.run(["sysctl", "-qw", "net.ipv4.tcp_ecn=1"], check=True)
    driver.marks = True
    data = Random(6).randbytes(500_000)
    kernel, ours = meet(driver, 7601)
    pump = Pump(ours, data)
    driver.do(lambda: pump.step(ours))
    got = kernel_side(kernel, data)
    until(pump.over.is_set, "the end of a marked transfer")
    same = hashlib.sha256(data).hexdigest()
    driver.marks = False
    return {"marked packets": got == same == pump.hash.hexdigest() and ours.error is None}


def main() -> None:
    driver = Corners()
    driver.start()
    silent = keepalives(driver)
    answers = simultaneous(driver) | zero_windows(driver) | challenges(driver) | congestion_marks(driver) | silent()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
