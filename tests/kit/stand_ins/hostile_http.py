"""An identity provider, git host or webhook receiver that gives one path a hostile answer.

    with hostile_provider() as provider:
        provider.answers["/token"] = plain(b'{"access_token": "x\\ny"}')

An answer is bytes, or an act on the socket; it closes the connection. Other paths answer as `IdentityProvider` does.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from tests.kit.stand_ins.oidc_provider import IdentityProvider

Act = Callable[[socket.socket], None]
Answer = bytes | Act


@dataclass
class HostileProvider(IdentityProvider):
    answers: dict[str, Answer] = field(default_factory=dict)
    "Hostile answers by path."
    served: list[str] = field(default_factory=list)
    "Paths of all requests."
    heads: list[bytes] = field(default_factory=list)
    waiting: int = 0
    "Connections that are being served."

    def serve(self, connection: socket.socket) -> None:
        self.waiting += 1
        try:
            with connection, contextlib.suppress(OSError):
                self._serve(connection)
        finally:
            self.waiting -= 1

    def _serve(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines:
            first = lines.readline()
            if not first:
                return
            head = [first]
            while (line := lines.readline()).strip():
                head.append(line)
            length = next((int(line[15:]) for line in head if line.lower().startswith(b"content-length:")), 0)
            form = {name: values[0] for name, values in parse_qs(lines.read(length).decode()).items()}
        path = first.split()[1].decode().partition("?")[0]
        self.served.append(path)
        self.heads.append(b"".join(head))
        hostile = self.answers.get(path)
        if hostile is None:
            status, document = self.answer(path, form)
            hostile = plain(json.dumps(document).encode(), status=f"{status} x")
        if callable(hostile):
            hostile(connection)
        else:
            connection.sendall(hostile)


@contextlib.contextmanager
def hostile_provider() -> Iterator[HostileProvider]:
    provider = HostileProvider()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        provider.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threads: list[threading.Thread] = []

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threads.append(threading.Thread(target=provider.serve, args=(connection,)))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield provider
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for thread in threads:
                thread.join()


def plain(body: bytes, status: str = "200 OK", fields: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{fields}\r\n".encode() + body


def drip(before: bytes, piece: bytes) -> Act:
    """A piece often enough for a timeout of each read, until the client has gone."""

    def act(connection: socket.socket) -> None:
        connection.sendall(before)
        while not select.select([connection], [], [], 0.01)[0] or connection.recv(4096):
            connection.sendall(piece)

    return act


def flood(before: bytes, piece: bytes) -> Act:
    """Pieces as fast as the client takes them, until it has gone."""

    def act(connection: socket.socket) -> None:
        connection.sendall(before)
        while True:
            connection.sendall(piece)

    return act


def silence(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


_OK = b"HTTP/1.1 200 OK\r\n"
_CHUNKED = _OK + b"Transfer-Encoding: chunked\r\n\r\n"
_LONG = _OK + b"Content-Length: 1000000000\r\n\r\n"

ENDLESS: Mapping[str, Answer] = {
    "silence": silence,
    "head byte by byte": drip(_OK + b"x: ", b"a"),
    "body byte by byte": drip(_LONG, b" "),
    "chunks byte by byte": drip(_CHUNKED, b"1\r\n \r\n"),
    "interim answers, slowly": drip(b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "half an answer": drip(_OK + b"Content-Length: 100\r\n\r\n{", b""),
    "chunk without its end": drip(_CHUNKED + b"5\r\n{}", b""),
    "trailers without end": drip(_CHUNKED + b"2\r\n{}\r\n0\r\n", b"a: b\r\n"),
    "no length, no end": drip(_OK + b"\r\n{}", b""),
}
"""Answers that do not end; the client's own time limit ends them."""

BROKEN: Mapping[str, Answer] = {
    "end at once": lambda _connection: None,
    "endless body": flood(_OK + b"\r\n", b" " * 65536),
    "endless chunks": flood(_CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "endless chunk extension": flood(_CHUNKED + b"1;", b"x" * 65536),
    "endless header line": flood(_OK + b"x: ", b"a" * 65536),
    "endless headers": flood(_OK, b"a: b\r\n" * 1000),
    "endless interim answers": flood(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 100),
    "endless status line": flood(b"HTTP/1.1 200 ", b"a" * 65536),
    "endless zeros": flood(b"", b"\0" * 65536),
    "switching protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH\r\n",
    "TLS alert": b"\x15\x03\x03\0\2\2\x28",
    "HTTP/0.9": b"{}",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\n\r\n{}",
    "status 999": plain(b"{}", "999 no"),
    "two lengths": _OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
    "negative length": _OK + b"Content-Length: -1\r\n\r\n{}",
    "length of hundred digits": _OK + b"Content-Length: " + b"9" * 100 + b"\r\n\r\n{}",
    "body too short": _OK + b"Content-Length: 100\r\n\r\n{}",
    "chunk size of hundred digits": _CHUNKED + b"f" * 100 + b"\r\n{}",
    "chunk size no number": _CHUNKED + b"zz\r\n{}",
    "unknown transfer encoding": _OK + b"Transfer-Encoding: gzip\r\n\r\n{}",
    "header without colon": _OK + b"nothing\r\n\r\n{}",
    "header with zero byte": _OK + b"a: \0b\r\nContent-Length: 2\r\n\r\n{}",
    "redirect inside": plain(b"", "302 Found", "Location: http://169.254.169.254/latest/meta-data\r\n"),
    "redirect to itself": plain(b"", "307 Temporary Redirect", "Location: /again\r\n"),
    "redirect to a file": plain(b"", "301 Moved", "Location: file:///etc/passwd\r\n"),
    "compressed bomb": plain(b"\x1f\x8b\x08" + b"\0" * 1000, fields="Content-Encoding: gzip\r\n"),
    "empty body": plain(b""),
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "page": plain(b"<html>sign in</html>", fields="Content-Type: text/html\r\n"),
    "deep JSON": plain(b"[" * 500_000),
    "deep object": plain(b'{"a":' * 150_000),
    "huge number": plain(b"1" * 500_000),
    "number in an object": plain(b'{"access_token": ' + b"1" * 500_000 + b"}"),
    "list": plain(b"[]"),
    "null": plain(b"null"),
    "text": plain(b'"x"'),
    "not a number": plain(b"NaN"),
    "invalid UTF-8": plain(b'{"\xff": "\xfe"}'),
    "UTF-16 without its mark": plain(b"{\0}\0"),
    "many keys": plain(b"{" + b",".join(b'"%d":0' % number for number in range(80_000)) + b"}"),
    "form of many fields": plain(b"&".join([b"a=b"] * 200_000)),
    "refusal, long": plain(b"x" * 900_000, "400 Bad Request"),
    "refusal, control characters": plain(b'{"error": "\\u001b[2J\\u0000", "error_description": "\\ud800"}', "400 x"),
    "refusal, long texts": plain(b'{"error": "e", "error_description": "' + b"d" * 900_000 + b'"}', "400 x"),
    "refusal, objects": plain(b'{"error": {"a": []}, "error_description": [1]}', "400 x"),
    "server error": plain(b"", "503 Unavailable", "Retry-After: 99999999999\r\n"),
}
"""Answers that a client can judge by itself."""
