"""A server that answers every request with the same odd answer, on a thread of its own.

For programs that must survive whatever a proxy, an older server or a sign-in page sends them.
"""

from __future__ import annotations

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
                line, body = _read_request(connection)
                if line:
                    server.asked.append(line)
                    server.bodies += [body] if body else []
                    if len(server.asked) <= patience:
                        connection.sendall(server.answer(*line))
            except OSError:
                pass  # the program went away, which is its right
            except Exception as error:
                server.failed = error


def _read_request(connection: socket.socket) -> tuple[tuple[str, str] | None, bytes]:
    """((method, path), body); None when nothing came."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None, b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    sizes = [int(line.partition(":")[2]) for line in lines if line.lower().startswith("content-length:")]
    while sizes and len(body) < sizes[0]:
        body += connection.recv(65536)
    method, path, _ = lines[0].split(" ", 2)
    return (method, path), body
