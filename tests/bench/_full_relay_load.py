"""Clients of a relay that send to each other as fast as it takes, for part `relay`; the same for every relay.

python -m tests.bench._full_relay_load PORT AUTHORITY reads lines of JSON: {"peers", "senders", "seconds"} is a
measurement, answered by one line. The first answer is the list of the peers' public keys, so that a deployment can be
told of them. Peer 2n and 2n+1 send to each other, in packets of 1,400 bytes; only what arrives counts.
"""

from __future__ import annotations

import json
import os
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

PACKET, BATCH = 1400, 40
"""Bytes of a packet, and packets of a write: 56 KB, about what a node with UDP offload has at a time."""
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
            self.pending = self.pending or memoryview(self.batch)
            self.pending = self.pending[self.socket.send(self.pending) :]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass


def measure(peers: Sequence[Peer], senders: int, seconds: float) -> dict[str, float]:
    """Return the bytes that arrived in so many seconds, after one second of start."""
    for peer in peers:
        peer.received = 0
    with selectors.DefaultSelector() as selector:
        for number, peer in enumerate(peers):
            writes = selectors.EVENT_WRITE if number < senders else 0
            selector.register(peer.socket, selectors.EVENT_READ | writes, peer)
        began = time.monotonic()
        is_warm = False
        cpu = time.process_time()
        while (now := time.monotonic()) < began + seconds + 1:
            if not is_warm and now > began + 1:
                is_warm, cpu = True, time.process_time()
                for peer in peers:
                    peer.received = 0
            for key, events in selector.select(0.1):
                if events & selectors.EVENT_READ:
                    key.data.read()
                if events & selectors.EVENT_WRITE:
                    key.data.write()
        took = time.monotonic() - began - 1
        used = (time.process_time() - cpu) / took
    # What was under way arrives and is thrown away; the rest of a batch must go out before the next measurement.
    _drain(peers)
    total = sum(peer.received for peer in peers)
    silent = sum(not peers[number ^ 1].received for number in range(senders))
    return {"mbit": total * 8 / took / 1e6, "cores": used, "silent": silent}


def _drain(peers: Sequence[Peer]) -> None:
    received = [peer.received for peer in peers]
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
    for peer, count in zip(peers, received, strict=True):
        peer.received = count


def main(port: int, authority: str) -> None:
    """Serve measurements until standard input ends."""
    privates = [PrivateKey.generate(os.urandom) for _ in range(KEYS)]
    print(json.dumps([private.public.binary.hex() for private in privates]), flush=True)
    context = ssl.create_default_context(cafile=authority)
    peers: list[Peer] = []
    for line in sys.stdin:
        wanted = json.loads(line)
        while len(peers) < wanted["peers"]:
            peers.append(Peer(len(peers), privates[len(peers)], port, context))
        for number, peer in enumerate(peers):
            peer.batch = derp.encode_send_packet(privates[number ^ 1].public.binary, bytes(PACKET)) * BATCH
        print(json.dumps(measure(peers, wanted["senders"], wanted["seconds"])), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
