"""Clients of a relay that send to each other as fast as it takes, for part `relay`; the same for every relay.

python -m tests.bench._full_relay_load PORT AUTHORITY reads lines of JSON: {"peers", "window", "seconds"} is a
measurement, answered by one line. The first answer is the list of the peers' public keys, so that a deployment can be
told of them. Peer 2n and 2n+1 send to each other, in packets of 1,400 bytes; only what arrives counts.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import socket
import ssl
import sys
import time
from collections.abc import Sequence

from coder.mesh.core.crypto.box import NONCE_SIZE, SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.wire import derp, derp_info, derp_reader
from tests.bench._relay_server import NAME

PACKET, BATCH = 1400, 11
"""Bytes of a packet, and packets of a write, which fill a TLS record."""
STALLED = 0.5
"""Seconds after which what has not arrived counts as dropped."""
READ = 1 << 16
KEYS = 100
_REQUEST = f"GET /derp HTTP/1.1\r\nHost: {NAME}\r\nUpgrade: DERP\r\nConnection: Upgrade\r\n\r\n".encode()


class Peer:
    """A client that is logged in."""

    def __init__(self, number: int, private: PrivateKey, port: int, context: ssl.SSLContext) -> None:
        plain = socket.create_connection(
            ("127.0.0.1", port), timeout=20, source_address=(f"127.0.0.{2 + number % 8}", 0)
        )
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname=NAME)
        self.received = 0
        self.sent = 0
        self.other = self
        self.pending = memoryview(b"")
        self.batch = b""
        self._log_in(private)
        self.socket.setblocking(False)

    def _log_in(self, private: PrivateKey) -> None:
        self.socket.sendall(_REQUEST)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, data = data.partition(b"\r\n\r\n")
        if b" 101 " not in head[:20]:
            raise ConnectionError(f"the relay answers {head[:80]!r}")
        reader, shared = derp_reader.FrameReader(), None
        while True:
            for kind, body in reader.feed_untrusted(data):
                frame = derp_reader.parse_untrusted(kind, body)
                if isinstance(frame, derp.ServerKey):
                    shared = SharedBox(private, frame.key)
                    info = derp_info.seal_client_info(
                        shared, private.public, os.urandom(NONCE_SIZE), derp_info.ClientInfo()
                    )
                    self.socket.sendall(info.encode())
                elif isinstance(frame, derp.SealedServerInfo):
                    return
            data = self._more()

    def _more(self) -> bytes:
        if not (data := self.socket.recv(READ)):
            raise ConnectionError("the relay closed the connection")
        return data

    def read(self) -> None:
        """Count what has arrived; it is not parsed, and a keepalive is six bytes a minute."""
        try:
            for _ in range(8):
                data = self.socket.recv(READ)
                if not data:
                    raise ConnectionError("the relay closed the connection")
                self.received += len(data)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass

    def write(self) -> None:
        """Send the rest of a batch, or the next."""
        try:
            if not self.pending:
                self.pending = memoryview(self.batch)
                self.sent += len(self.batch)
            self.pending = self.pending[self.socket.send(self.pending) :]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass


def measure(peers: Sequence[Peer], window: int, seconds: float) -> dict[str, float]:
    """Return what arrived in so many seconds, after one second of start.

    Every peer sends, with at most `window` bytes under way to the other of its pair; 0 sets no limit.
    """
    with selectors.DefaultSelector() as selector:
        for peer in peers:
            peer.sent = peer.other.received
            selector.register(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
        began = checked = time.monotonic()
        before: list[int] = []
        cpu = started = 0.0
        seen = [0] * len(peers)
        while (now := time.monotonic()) < began + seconds + 1:
            if not before and now > began + 1:
                before, cpu, started = [peer.received for peer in peers], time.process_time(), now
            if now > checked + STALLED:
                checked = now
                for number, peer in enumerate(peers):
                    if peer.other.received == seen[number]:  # the relay dropped what was under way
                        peer.sent = peer.other.received
                        selector.modify(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
                    seen[number] = peer.other.received
            for key, events in selector.select(0.05):
                peer = key.data
                if events & selectors.EVENT_READ:
                    peer.read()
                    if window and peer.other.sent - peer.received < window:
                        selector.modify(peer.other.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer.other)
                if events & selectors.EVENT_WRITE:
                    if not window or peer.pending or peer.sent - peer.other.received < window:
                        peer.write()
                    else:
                        selector.modify(peer.socket, selectors.EVENT_READ, peer)
        took = time.monotonic() - started
        used = (time.process_time() - cpu) / took
    arrived = [peer.received - count for peer, count in zip(peers, before, strict=True)]
    _drain(peers)
    return {"mbit": sum(arrived) * 8 / took / 1e6, "cores": used, "silent": arrived.count(0), "seconds": took}


def _drain(peers: Sequence[Peer]) -> None:
    """Let what is under way arrive; the rest of a batch must go out before the next measurement."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        before = sum(peer.received for peer in peers)
        for peer in peers:
            if peer.pending:
                peer.write()
            peer.read()
        time.sleep(0.05)
        if sum(peer.received for peer in peers) == before and not any(peer.pending for peer in peers):
            break


def _next_line(peers: Sequence[Peer]) -> str:
    """The next line of standard input; peers read meanwhile, because a relay disconnects those that do not."""
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        for peer in peers:
            peer.read()
            if peer.pending:
                peer.write()
    return sys.stdin.readline()


def main(port: int, authority: str) -> None:
    """Serve measurements until standard input ends."""
    privates = [PrivateKey.generate(os.urandom) for _ in range(KEYS)]
    print(json.dumps([private.public.binary.hex() for private in privates]), flush=True)
    context = ssl.create_default_context(cafile=authority)
    peers: list[Peer] = []
    while line := _next_line(peers):
        wanted = json.loads(line)
        while len(peers) < wanted["peers"]:
            peers.append(Peer(len(peers), privates[len(peers)], port, context))
        for number, peer in enumerate(peers):
            peer.other = peers[number ^ 1]
            peer.batch = derp.encode_send_packet(privates[number ^ 1].public, bytes(PACKET)) * BATCH
        print(json.dumps(measure(peers, wanted["window"], wanted["seconds"])), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
