"""Driver of the tries against applications and terminals, at a server or a workspace proxy."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from tests.attacks.strangers.kinds import Kind
from tests.attacks.strangers.place import Address, HostileApp, connect, send
from tests.attacks.strangers.tables.edge import GET, SWITCH, UPGRADE

TERMINAL = (
    b"GET /api/v2/workspaceagents/AGENT/pty?reconnect=SESSION HTTP/1.1\r\nHost: x\r\nCoder-Session-Token: TOKEN\r\n"
)
GOOD = (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine",)


@dataclass
class EdgeAttacker:
    address: Address
    app: HostileApp
    host: str
    "Of the application, with the port."
    agent_id: str
    token: str
    held: list[socket.socket] = field(default_factory=list)

    def run(self, one: Kind) -> bytes:
        app = self.app
        app.pieces, app.then = GOOD, "close"
        if one.stage == "request":
            return self._send(*one.pieces, then=one.then)
        if one.stage == "terminal":
            return self._switched(TERMINAL + UPGRADE + b"\r\n", one)
        if one.stage == "switched":
            app.pieces, app.then = (SWITCH + b"\r\n",), "hold"
            return self._switched(GET + UPGRADE + b"\r\n", one)
        app.pieces = one.pieces
        app.then = one.then if one.then != "read" else "close"
        if one.stage == "switch":
            return self._send(GET + UPGRADE + b"\r\n")
        return self._send(GET + b"\r\n", then="read" if one.then != "hold" else "hold")

    def works(self) -> bool:
        """Whether the application is served as before."""
        self.app.pieces, self.app.then = GOOD, "close"
        return self._send(GET + b"\r\n").startswith(b"HTTP/1.1 200 ")

    def close(self) -> None:
        for stream in self.held:
            stream.close()
        self.held.clear()

    def _filled(self, data: bytes) -> bytes:
        data = data.replace(b"HOST", self.host.encode()).replace(b"PORTs", b"%ds" % self.app.port)
        data = data.replace(b"host", self.host.upper().encode())  # "HOST" in the other case
        data = data.replace(b"apps.test", self.host.partition(".")[2].encode())
        session = b"00000000-0000-4000-8000-000000000077"
        return (
            data.replace(b"AGENT", self.agent_id.encode())
            .replace(b"SESSION", session)
            .replace(b"TOKEN", self.token.encode())
        )

    def _send(self, *pieces: bytes, then: str = "read") -> bytes:
        return send(connect(self.address), [self._filled(piece) for piece in pieces], then, self.held, first=5.0)

    def _switched(self, request: bytes, one: Kind) -> bytes:
        stream = connect(self.address)
        stream.sendall(self._filled(request))
        answer = stream.recv(65536)
        assert answer.startswith(b"HTTP/1.1 101"), answer
        return send(stream, one.pieces, one.then, self.held)
