"""Parsing of whole and broken answers by the blocking client."""

from __future__ import annotations

import select
import socket
import threading

import pytest

from coder.net.blocking import BlockingClient
from coder.net.errors import NetError
from coder.net.policy import DialPolicy

HEAD = b"HTTP/1.1 200 OK\r\n"
GOOD = {
    "length": (HEAD + b"Content-Length: 5\r\n\r\nhello", 200, b"hello"),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n", 200, b"hello"),
    "until the end": (HEAD + b"Connection: close\r\n\r\nhello", 200, b"hello"),
    "after early hints": (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + HEAD + b"Content-Length: 0\r\n\r\n", 200, b""),
    "nothing": (b"HTTP/1.1 204 \r\nX: 1\r\n\r\n", 204, b""),
}
TOO_LARGE = b"HTTP/1.1 413 \r\nConnection: close\r\nContent-Length: 5\r\n\r\nlarge"
BAD = {
    "silence": b"",
    "no HTTP": b"SSH-2.0-something\r\n",
    "no number": b"HTTP/1.1 OK\r\n\r\n",
    "a header without a colon": HEAD + b"oops\r\n\r\n",
    "a length that is none": HEAD + b"Content-Length: -1\r\n\r\n",
    "a length beyond all memory": HEAD + b"Content-Length: 999999999999999\r\n\r\nhello",
    "a length beyond all numbers": HEAD + b"Content-Length: " + b"9" * 4000 + b"\r\n\r\nhello",
    "a chunk beyond all memory": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 4000 + b"\r\nhello",
    "too short": HEAD + b"Content-Length: 50\r\n\r\nhello",
    "a chunk that is none": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an endless line": HEAD + b"X: " + b"a" * (1 << 17),
}


class Peer:
    """Sends the next answer to each connection, after it has read a request."""

    def __init__(self, *answers: bytes) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.policy = DialPolicy(f"http://127.0.0.1:{self._listening.getsockname()[1]}", proxies={})
        self._thread = threading.Thread(target=self._serve, args=(answers,), daemon=True)
        self._thread.start()

    def _serve(self, answers: tuple[bytes, ...]) -> None:
        for answer in answers:
            connection, _ = self._listening.accept()
            with connection:
                connection.recv(1 << 16)
                try:
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    connection.recv(1 << 16)
                except OSError:
                    pass  # it has read enough
        self._listening.close()

    def request(self, client: BlockingClient) -> tuple[int, bytes]:
        answer = client.request("GET", "/")
        return answer.status, answer.body


@pytest.mark.parametrize("name", GOOD)
def test_answers(name: str) -> None:
    raw, status, body = GOOD[name]
    peer = Peer(raw)
    client = BlockingClient(peer.policy)
    assert peer.request(client) == (status, body)
    client.close()


@pytest.mark.parametrize("name", BAD)
def test_invalid_answers_are_rejected(name: str) -> None:
    client = BlockingClient(Peer(BAD[name]).policy)
    with pytest.raises(NetError) as failed:
        client.request("GET", "/")
    assert failed.value.code in {"protocol", "unreachable"}
    assert client._connection is None


def test_early_answer_is_read() -> None:
    """The server closes during the body, which breaks the sending; its answer is readable."""
    client = BlockingClient(Peer(TOO_LARGE).policy)
    answer = client.request("POST", "/", body=bytes(30 << 20), expect=(413,))
    assert (answer.status, answer.body) == (413, b"large")
    client.close()


def test_closed_kept_connection_is_reopened() -> None:
    peer = Peer(GOOD["length"][0], GOOD["chunks"][0])
    client = BlockingClient(peer.policy)
    assert peer.request(client) == peer.request(client) == (200, b"hello")
    client.close()


class UnwillingPeer(Peer):
    """Answers the first request of a connection and closes it during the second."""

    arrived: list[bytes]

    def _serve(self, answers: tuple[bytes, ...]) -> None:
        self.arrived = []
        for answer in answers:
            connection, _ = self._listening.accept()
            with connection:
                self.arrived += connection.recv(1 << 16).split()[:1]
                connection.sendall(answer)
                self.arrived += connection.recv(1 << 16).split()[:1]
        self._listening.close()


@pytest.mark.parametrize(("method", "is_repeated"), [("GET", True), ("DELETE", True), ("POST", False)])
def test_only_idempotent_requests_are_repeated(method: str, is_repeated: bool) -> None:
    peer = UnwillingPeer(*[GOOD["length"][0]] * (1 + is_repeated))
    client = BlockingClient(peer.policy)
    peer.request(client)
    if is_repeated:
        assert client.request(method, "/").body == b"hello"
        assert peer.arrived == [b"GET", method.encode(), method.encode()]
    else:
        with pytest.raises(NetError, match="did not answer"):
            client.request(method, "/")
        assert peer.arrived == [b"GET", method.encode()]
    client.close()
    peer._thread.join()


def test_post_avoids_closed_connection() -> None:
    peer = Peer(GOOD["length"][0], GOOD["length"][0])
    client = BlockingClient(peer.policy)
    peer.request(client)
    assert client._connection is not None
    select.select([client._connection._socket], [], [])  # the peer's end has arrived
    assert client.request("POST", "/").body == b"hello"
    client.close()


class WordyPeer(Peer):
    """Answers every request of a connection, and sends a further answer with each."""

    arrived: list[bytes]

    def _serve(self, answers: tuple[bytes, ...]) -> None:
        self.arrived = []
        for answer in answers:
            connection, _ = self._listening.accept()
            with connection:
                while data := connection.recv(1 << 16):
                    self.arrived += data.split()[:1]
                    connection.sendall(answer + GOOD["nothing"][0])
        self._listening.close()


def test_rest_of_an_answer_answers_no_request() -> None:
    peer = WordyPeer(*[GOOD["length"][0]] * 3)
    client = BlockingClient(peer.policy)
    for method in ("GET", "POST", "GET"):
        assert client.request(method, "/").body == b"hello"
    client.close()
    peer._thread.join()
    assert peer.arrived == [b"GET", b"POST", b"GET"]
