"""Masking of addresses in errors, in `--verbose` and in a daemon's log; nothing else of a request is shown."""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable
from types import FrameType

import pytest
import trio

from coder.cli.core.failures import defect_text
from coder.net import http1
from coder.net.blocking import BlockingClient
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.masking import MAX_SHOWN, SECRET_PATHS, masked, masked_path, shown_setting, without_web_login
from coder.net.policy import DialPolicy
from coder.net.request_log import REQUESTS
from tests.kit.stand_ins.scripted_http_servers import odd_server, reply

QUERY = "?sig=***&X-Amz-Credential=***&auth=***&pass=***&jwt=***"
SECRET = "kept-to-Oneself%2F9"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://x.example/api/v2/users/me", "https://x.example/api/v2/users/me"),
        ("https://x.example/a?q=owner:me&token=abc-def", "https://x.example/a?q=owner:me&token=***"),
        ("https://x.example/a?coder_session_token=abc&b=1", "https://x.example/a?coder_session_token=***&b=1"),
        ("https://x.example/a?code=1&STATE=2", "https://x.example/a?code=***&STATE=***"),
        ("https://user:pass@x.example/a", "https://***@x.example/a"),
        ("https://user:p@ss@x.example/a", "https://***@x.example/a"),
        ("https://x.example/a?sig=1&X-Amz-Credential=2&auth=3&pass=4&jwt=5", f"https://x.example/a{QUERY}"),
        (
            "https://x.example/base/api/v2/provisionerkeys/abc/?a=1",
            "https://x.example/base/api/v2/provisionerkeys/***?a=1",
        ),
        ("/api/v2/organizations/o/provisionerkeys/named", "/api/v2/organizations/o/provisionerkeys/named"),
        ("/api/v2/provisionerkeys/", "/api/v2/provisionerkeys/"),
        ("//derp/streams//abc/def", "//derp/streams//***"),
        ("https://x.example/a?b=c?token=d=e?f&g=h", "https://x.example/a?b=c?token=***&g=h"),
        ("/a&key?b=c&d?e=1&f=2?secret_g=3", "/a&key?b=***&d?e=1&f=2?secret_g=***"),
        ("/keys=1/token?a=b", "/keys=1/token?a=b"),
    ],
)
def test_secrets_are_stars(url: str, expected: str) -> None:
    assert masked(url) == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://user:s3cret@x.example/a", "https://***@x.example/a"),
        (["a", "ftp://s3cret@x.example"], ["a", "ftp://***@x.example"]),
        (("https://x.example/?token=s3cret",), ("https://x.example/?token=***",)),
        ("/mnt/a@b", "/mnt/a@b"),
        ("a@example.com", "a@example.com"),
        (f"https://x.example/{'a' * MAX_SHOWN}", f"https://x.example/{'a' * MAX_SHOWN}"),
        (7, 7),
    ],
)
def test_addresses_of_settings_are_masked(value: object, shown: object) -> None:
    assert shown_setting(value) == shown


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://token@x.example/a.git", "https://x.example/a.git"),
        ("HTTP://user:p@ss@x.example", "HTTP://x.example"),
        ("https://x.example/a?b=c@d", "https://x.example/a?b=c@d"),
        ("ssh://git@x.example/a.git", "ssh://git@x.example/a.git"),
        ("git@x.example:a.git", "git@x.example:a.git"),
    ],
)
def test_login_of_web_addresses_is_left_out(url: str, expected: str) -> None:
    assert without_web_login(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "?" * 300 + "key" * 300,
        "?key" * 300,
        "&key" * 300,
        "=" * 900,
        "?key=" * 300,
        "//" * 500,
        "//@" * 300,
        "/api/v2/" * 99,
    ],
)
@pytest.mark.parametrize("mask", [masked, masked_path])
def test_masking_costs_linear_time(url: str, mask: Callable[[str], str]) -> None:
    """For a stranger's address. Calls are counted; steps of patterns: conformance/test_every_pattern.py."""

    def calls(text: str) -> int:
        count = 0

        def note(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal count
            count += event in {"call", "c_call"}

        # Garbage of other tests adds calls at its end.
        gc.collect()
        gc.disable()
        sys.setprofile(note)
        try:
            mask(text)
        finally:
            sys.setprofile(None)
            gc.enable()
        return count

    assert calls(url * 8) < 10 * calls(url)


def test_shown_address_is_limited() -> None:
    assert len(masked("https://x.example/" + "a" * 100_000)) == MAX_SHOWN + 1
    assert SECRET not in masked(f"https://{'u' * MAX_SHOWN}:{SECRET}@x.example/")


async def stay_silent(stream: trio.SocketStream) -> None:
    async with stream:
        while await stream.receive_some():
            pass


def answer_with(head: bytes) -> Callable[[trio.SocketStream], Awaitable[None]]:
    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(head)

    return answer


NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
NOT_ALLOWED = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nxxxxxxxxx"
TIMEOUT = 0.05
"""Seconds; a socket's silence cannot be skipped."""


@pytest.mark.parametrize("path", SECRET_PATHS)
@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (answer_with(NOT_FOUND), HttpError),
        (answer_with(NOT_ALLOWED), HttpError),
        (answer_with(LARGE), NetError),
        (stay_silent, NetError),
        (answer_with(b""), NetError),
        (answer_with(b"no HTTP\r\n\r\n"), NetError),
    ],
    ids=["404", "405", "too large", "timeout", "closed", "no http"],
)
async def test_failed_requests_hide_their_secret(
    path: str,
    handler: Callable[[trio.SocketStream], Awaitable[None]],
    kind: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http1, "MAX_BODY", 5)
    texts: list[str] = []
    monkeypatch.setattr(REQUESTS, "listener", lambda exchange: texts.append(str(exchange)))
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handler, [listener])
        port = listener.socket.getsockname()[1]
        async with HttpClient(DialPolicy(f"http://user:{SECRET}@127.0.0.1:{port}")) as client:
            with pytest.raises(kind) as caught:
                await client.request("GET", path + SECRET, timeout=TIMEOUT if handler is stay_silent else 30)
        nursery.cancel_scope.cancel()
    texts += [str(caught.value), repr(caught.value), defect_text(ValueError("odd"), verbose=False)]
    assert len(texts) == 4 and f"GET http://***@127.0.0.1:{port}{path}***" in texts[0]
    assert SECRET not in "\n".join(texts)


@pytest.mark.parametrize("path", SECRET_PATHS)
@pytest.mark.parametrize("answer", [reply("{}", status="404 Not Found"), b"", b"no HTTP\r\n\r\n"])
def test_short_command_hides_secrets(path: str, answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(REQUESTS, "listener", lambda exchange: texts.append(str(exchange)))
    with odd_server() as server:
        server.answer = lambda _method, _path: answer
        address = server.url
        with pytest.raises((HttpError, NetError)) as caught:
            BlockingClient(DialPolicy(address)).request("GET", path + SECRET)
    with pytest.raises(NetError) as unreachable:
        BlockingClient(DialPolicy(address)).request("GET", path + SECRET)
    assert f"{path}***" in unreachable.value.message
    texts += [str(caught.value), str(unreachable.value), defect_text(ValueError("odd"), verbose=False)]
    assert len(texts) == 5 and SECRET not in "\n".join(texts)
