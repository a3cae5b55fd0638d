"""Driver of the tries against a relay: brings a connection into the state that a try begins in."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass, field

from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.wire import derp, derp_info, derp_reader
from tests.attacks.strangers.kinds import Kind
from tests.attacks.strangers.place import ATTACKER, VICTIM, Address, connect, send
from tests.attacks.strangers.tables.relay import OTHER, OWN, frame

UPGRADE = b"GET /derp HTTP/1.1\r\nHost: x\r\nUpgrade: DERP\r\nConnection: Upgrade\r\n\r\n"
WEBSOCKET = (
    b"GET /derp HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: derp\r\n\r\n"
)
CARRY = b"POST /derp HTTP/1.1\r\nHost: x\r\nCoder-Carry: DERP\r\nContent-Length: 0\r\n\r\n"
INFO = derp_info.ClientInfo()


@dataclass
class Client:
    """A client of the relay with plain sockets."""

    address: Address
    source: str = ATTACKER
    key: PrivateKey = field(default_factory=lambda: PrivateKey.generate(os.urandom))
    stream: socket.socket = field(init=False)
    server: PublicKey = field(init=False)

    def upgrade(self) -> None:
        self.stream = connect(self.address, self.source)
        self.stream.sendall(UPGRADE)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._more()
        reader = derp_reader.FrameReader()
        frames = list(reader.feed_untrusted(received.partition(b"\r\n\r\n")[2]))
        while not frames:
            frames += reader.feed_untrusted(self._more())
        first = derp_reader.parse_untrusted(*frames[0])
        assert isinstance(first, derp.ServerKey)
        self.server = first.key

    def _more(self) -> bytes:
        data = self.stream.recv(65536)
        if not data:
            raise ConnectionError("the relay closed the connection")
        return data

    def sealed(self, content: bytes, server: PublicKey | None = None, key: bytes | None = None) -> bytes:
        nonce = os.urandom(24)
        box = SharedBox(self.key, server or self.server).seal(nonce, content)
        return frame(derp.CLIENT_INFO, bytes(key or self.key.public) + nonce + box)

    def log_in(self) -> None:
        self.upgrade()
        self.stream.sendall(self.sealed(INFO.encode()))
        head = self._more()
        assert head[0] == derp.SERVER_INFO, head[:20]


@dataclass
class RelayAttacker:
    address: Address
    held: list[socket.socket] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.victim = Client(self.address, VICTIM)
        self.victim.log_in()

    def victim_works(self) -> bool:
        """Whether the victim's connection still forwards to itself by way of a second one."""
        probe = Client(self.address, VICTIM)
        with contextlib.closing(self.victim.stream):
            self.victim = Client(self.address, VICTIM)
            self.victim.log_in()
            probe.log_in()
            with contextlib.closing(probe.stream):
                probe.stream.sendall(derp.SendPacket(self.victim.key.public, b"through").encode())
                return b"through" in self.victim.stream.recv(65536)

    def close(self) -> None:
        for stream in self.held:
            stream.close()
        self.held.clear()
        self.victim.stream.close()

    def run(self, one: Kind) -> bytes:
        """Make one try; return what the relay answered."""
        if one.stage in {"http", "carried"}:
            return self._http(one)
        client = Client(self.address)
        if one.stage == "websocket":
            client.stream = connect(self.address)
            client.stream.sendall(WEBSOCKET)
            client.stream.recv(65536)
        elif one.stage == "upgraded":
            client.upgrade()
        elif one.stage == "client":
            client.log_in()
        else:
            return self._login(client, one)
        return self._send(client.stream, [self._filled(client, piece) for piece in one.pieces], one.then)

    def _filled(self, client: Client, piece: bytes) -> bytes:
        return piece.replace(OWN, bytes(client.key.public)).replace(OTHER, bytes(self.victim.key.public))

    def _send(self, stream: socket.socket, pieces: list[bytes], then: str) -> bytes:
        return send(stream, pieces, then, self.held)

    def _http(self, one: Kind) -> bytes:
        pieces = list(one.pieces)
        if one.stage == "carried":
            with connect(self.address) as stream:
                stream.sendall(CARRY)
                answer = stream.recv(65536)
            ident = answer.lower().partition(b"coder-carrier: ")[2][:32]
            assert len(ident) == 32, answer
            pieces = [piece.replace(b" ID ", b" /derp/streams/" + ident + b" ") for piece in pieces]
        return self._send(connect(self.address), pieces, one.then)

    def _login(self, client: Client, one: Kind) -> bytes:
        client.upgrade()
        (content,) = one.pieces
        sealed = client.sealed(content)
        more: list[bytes] = []
        if one.stage == "info twice":
            more = [sealed]
        elif one.stage == "info replayed":
            again = Client(self.address, key=client.key)
            again.upgrade()
            self._send(again.stream, [sealed], "read")
        elif one.stage == "info for another relay":
            sealed = client.sealed(content, server=PrivateKey.generate(os.urandom).public)
        elif one.stage == "info changed":
            sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
        elif one.stage == "info with another key":
            sealed = client.sealed(content, key=bytes(PrivateKey.generate(os.urandom).public))
        elif one.stage == "info of the victim":
            sealed = client.sealed(content, key=bytes(self.victim.key.public))
        elif one.stage == "one key often":
            for _ in range(40):
                again = Client(self.address, key=client.key)
                again.log_in()
                self.held.append(again.stream)
        return self._send(client.stream, [sealed, *more], one.then)
