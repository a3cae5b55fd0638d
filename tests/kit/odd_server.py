"""A server that answers every request with the same odd answer, on a thread of its own.

For programs that must survive whatever a proxy, an older server or a sign-in page sends them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Reply = Callable[[str, str], bytes]
"""(method, path) -> the whole answer, head and body; b"" closes the connection without a word."""


def reply(body: str, *, status: str = "200 OK", kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body.encode())}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


@dataclass(slots=True)
class OddServer:
    """Its address, what it answers next and what it was asked."""

    url: str
    answer: Reply
    asked: list[tuple[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    "Of the requests that had one."
    upgrades: bool = False
    "A WebSocket is opened to whoever asks for one; the parts of a list are its messages, and then it ends."
    failed: Exception | None = None
    "What went wrong in `answer`: the test's own fault."


@contextmanager
def odd_server(patience: int = 400) -> Iterator[OddServer]:
    """Answers until the block ends. `patience`: after so many requests it closes without a word, which ends loops."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = OddServer(f"http://127.0.0.1:{listener.getsockname()[1]}", lambda _method, _path: b"")
    thread = threading.Thread(target=_serve, args=(listener, server, patience), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _serve(listener: socket.socket, server: OddServer, patience: int) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(5)
            try:
                line, body, key = _read_request(connection)
                if line:
                    server.asked.append(line)
                    server.bodies += [body] if body else []
                    if len(server.asked) <= patience:
                        answer = server.answer(*line)
                        connection.sendall(_web_socket(key, answer) if key and server.upgrades else answer)
            except OSError:
                pass  # the program went away, which is its right
            except Exception as error:
                server.failed = error


_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3


def _web_socket(key: str, answer: bytes) -> bytes:
    """Handshake, messages and close, in which the answer's body is sent."""
    accepted = base64.b64encode(hashlib.sha1(f"{key}{_GUID}".encode(), usedforsecurity=False).digest()).decode()
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    body = json.loads(answer.partition(b"\r\n\r\n")[2] or b"null")
    frames = b"".join(_frame(json.dumps(part).encode()) for part in (body if isinstance(body, list) else [body]))
    return f"{head}Sec-WebSocket-Accept: {accepted}\r\n\r\n".encode() + frames + b"\x88\x02\x03\xe8"


def _frame(text: bytes) -> bytes:
    size = bytes([len(text)]) if len(text) < 126 else b"\x7e" + len(text).to_bytes(2)
    return b"\x81" + size + text


def _read_request(connection: socket.socket) -> tuple[tuple[str, str] | None, bytes, str]:
    """((method, path), body, the key of a WebSocket); None when nothing came."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None, b"", ""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    while len(body) < int(fields.get("content-length", 0)):
        body += connection.recv(65536)
    method, path, _ = lines[0].split(" ", 2)
    return (method, path), body, fields.get("sec-websocket-key", "")
