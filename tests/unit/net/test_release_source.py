"""Locations of releases: unusable ones give a sentence, redirects follow the rule, and a limit holds."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from coder.base.errors import CoderError
from coder.net import blocking, http1
from coder.net.policy import DialPolicy
from coder.net.release_source import file_of, join_location, list_location, read_location

LIMIT = 100


class Handler(http.server.BaseHTTPRequestHandler):
    location = ""
    length = 0
    sent = "length"

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", self.location)
            self.end_headers()
            return
        data = b"x" * self.length
        self.send_response(200)
        if self.sent == "length":
            self.send_header("Content-Length", str(self.length))
        elif self.sent == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            data = b"%x\r\n%s\r\n0\r\n\r\n" % (self.length, data)
        elif self.sent in {"endless", "claimed"}:
            self.send_header("Transfer-Encoding", "chunked")
            data = b"ffffffff\r\nx" if self.sent == "claimed" else b"1\r\nx\r\n"
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(data)
            while self.sent == "endless":
                self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Handler, "protocol_version", "HTTP/1.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def read(location: str) -> bytes:
    return read_location(
        location, lambda origin: DialPolicy(origin, proxies={}, headers=(("Connection", "close"),)), LIMIT
    )


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://[", "is not valid"),
        ("http://127.0.0.1:99999999/", "is not valid"),
        ("http://user:s3cret@127.0.0.1/", "contains a user name or password"),
        ("ftp://user:s3cret@127.0.0.1/", "begins with ftp://"),
        ("file:///etc/passwd", "begins with file://"),
        ("", "more than 5"),
    ],
)
def test_redirect_to_an_unusable_address(location: str, reason: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "location", location)
    with pytest.raises(CoderError, match=reason) as caught:
        read(f"{url}/moved")
    assert caught.value.code == "release_source" and "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("/srv/a\0b", "not valid"),
        ("~no-such-user-here/releases", "home directory"),
        ("/srv/" + "a" * 5000, "File name too long"),
        ("/nonexistent/releases.json", "No such file"),
        ("https://user:s3cret@mirror/", "contains a user name or password"),
        ("http://[", "is not valid"),
    ],
    ids=["nul", "unknown home", "long", "absent", "login", "bracket"],
)
def test_unusable_location_gives_a_sentence(location: str, reason: str) -> None:
    with pytest.raises(CoderError, match=reason) as caught:
        read(list_location(location, "releases.json"))
    assert caught.value.code == "release_source" and "s3cret" not in str(caught.value)
    assert str(caught.value).isprintable()


def test_folder_with_nul_gives_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CoderError, match="not valid"):
        read(join_location(str(tmp_path / "releases.json"), "a\0b"))


def test_secret_of_a_query_is_masked() -> None:
    with pytest.raises(CoderError) as caught:
        read("http://127.0.0.1:1/releases.json?token=s3cret")
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"


def by_tls_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go the way of proxies with TLS, which needs the other client; the proxy itself is left out."""

    async def connect(policy: DialPolicy, *, forwarded: bool) -> trio.SocketStream:
        return await trio.open_tcp_stream(policy.origin.hostname or "", policy.origin.port or 0)

    monkeypatch.setattr(blocking, "proxy_for", lambda policy, host, scheme: "https://proxy.test")
    monkeypatch.setattr(http1, "connect", connect)


SENT = ("length", "chunks", "until the end", "endless")


@pytest.mark.parametrize(
    ("sent", "prepare"),
    [*((sent, lambda _: None) for sent in (*SENT, "claimed")), *((sent, by_tls_proxy) for sent in SENT)],
)
def test_answer_over_the_limit_is_refused(
    sent: str, prepare: Callable[[pytest.MonkeyPatch], None], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body is not held: the error comes from the client, before the content is compared with the limit."""
    prepare(monkeypatch)
    monkeypatch.setattr(Handler, "sent", sent)
    monkeypatch.setattr(Handler, "length", LIMIT)
    if sent not in {"endless", "claimed"}:
        assert len(read(url)) == LIMIT
    monkeypatch.setattr(Handler, "length", LIMIT + 1)
    with pytest.raises(CoderError, match=rf"the answer of {url}/ is larger than {LIMIT} bytes"):
        read(url)


@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("https://mirror/v2", "https://mirror/v2/SUMS"),
        ("https://mirror/v2/", "https://mirror/v2/SUMS"),
        ("https://mirror", "https://mirror/SUMS"),
        ("https://mirror/v2?token=a", "https://mirror/v2/SUMS?token=a"),
        ("/srv/v2", "/srv/v2/SUMS"),
    ],
)
def test_file_of_a_folder(folder: str, file: str) -> None:
    assert file_of(folder, "SUMS") == file
