"""An upgrade without an answer: carried by plain requests only where those are answered."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio

from coder.mesh.derp_map import DerpNode, DerpRegion
from coder.mesh.errors import RelayError
from coder.net import carried_stream, http1, websocket
from coder.net.errors import HttpError, NetError, UnansweredUpgrade
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from coder.tailnet import relay
from coder.tailnet.relay import RelayDialer

PLAIN = "GET /latency-check"


class SilentServer:
    """Answers no upgrade but, if `is_busy`, one to the relay, by `relay_status`; and other requests only if
    `answers_plain`, with `sign`. If it `closes`, it ends the connection of an upgrade instead."""

    def __init__(
        self,
        answers_plain: bool,
        *,
        is_busy: bool = False,
        relay_status: str = "",
        sign: str = "",
        closes: bool = False,
    ) -> None:
        self.answers_plain, self.is_busy, self.relay_status = answers_plain, is_busy, relay_status
        self.sign, self.closes = sign, closes
        self.requests: list[str] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        head = b""
        with contextlib.suppress(trio.BrokenResourceError):
            while b"\r\n\r\n" not in head:
                if not (data := await stream.receive_some()):
                    return
                head += data
            self.requests.append(head.split(b" HTTP/1.1")[0].decode())
            if self.answers_plain and b"upgrade:" not in head.lower():
                answer = f"HTTP/1.1 404 Not Found\r\n{self.sign}Content-Length: 0\r\nConnection: close\r\n\r\n"
                await stream.send_all(answer.encode())
                return
            if self.closes:
                await stream.aclose()
                return
            if self.relay_status and head.startswith(b"GET /derp "):
                await stream.send_all(f"HTTP/1.1 {self.relay_status}\r\nContent-Length: 0\r\n\r\n".encode())
            elif self.is_busy and head.startswith(b"GET /derp "):
                answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                await stream.send_all(answer)
            await trio.sleep_forever()


@contextlib.asynccontextmanager
async def _server(answers_plain: bool, **options: Any) -> AsyncIterator[tuple[SilentServer, int]]:
    server = SilentServer(answers_plain, **options)
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(trio.serve_tcp, server.serve, 0)
        yield server, listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade: Callable[..., Any] = http1.upgrade
    monkeypatch.setattr(websocket, "upgrade", lambda policy, path, fields, *_: upgrade(policy, path, fields, 0.2))
    monkeypatch.setattr(carried_stream, "PLAIN_TIMEOUT", 0.2)
    monkeypatch.setattr(relay, "TRANSPORT_TIMEOUT", 0.2)


def be_patient_with_plain_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer for an answer than an upgrade gets that is never answered."""
    ask = carried_stream.has_room

    async def ask_patiently(policy: DialPolicy) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(carried_stream, "PLAIN_TIMEOUT", 60.0)
            return await ask(policy)

    monkeypatch.setattr(carried_stream, "has_room", ask_patiently)


async def requests_of(server: SilentServer, number: int) -> list[str]:
    """Return the server's requests, once it has read so many; the client does not wait for that."""
    with trio.fail_after(60):
        while len(server.requests) < number:
            await trio.sleep(0.01)
    return sorted(server.requests)


@pytest.mark.parametrize("answers_plain", [False, True])
async def test_websocket_is_carried_past_middleboxes_only(
    answers_plain: bool, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answers_plain:
        be_patient_with_plain_requests(monkeypatch)
    async with _server(answers_plain) as (server, port):
        with trio.fail_after(60), pytest.raises(UnansweredUpgrade):
            await connect_websocket(DialPolicy(f"http://127.0.0.1:{port}", proxies={}), "/link")
        expected = ["GET /latency-check", "GET /link", *(["GET /derp", PLAIN, "POST /link"] if answers_plain else [])]
        assert await requests_of(server, len(expected)) == sorted(expected)


@pytest.mark.parametrize(
    ("relay_status", "is_carried"),
    [("", False), ("404 Not Found", False), ("429 Too Many Requests", False), ("426 Upgrade Required", True)],
    ids=["relay", "no relay", "budget used up", "stripped"],
)
async def test_busy_server_gets_no_dearer_attempt(
    relay_status: str, is_carried: bool, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers what is cheap, and lets agents wait."""
    monkeypatch.setattr(carried_stream, "PLAIN_TIMEOUT", 60.0)
    async with _server(answers_plain=True, is_busy=True, relay_status=relay_status) as (server, port):
        with trio.fail_after(60), pytest.raises(UnansweredUpgrade):
            await connect_websocket(DialPolicy(f"http://127.0.0.1:{port}", proxies={}), "/link")
        expected = ["GET /derp", PLAIN, "GET /link", *[PLAIN, "POST /link"] * is_carried]
        assert await requests_of(server, len(expected)) == sorted(expected)


@pytest.mark.parametrize("sign", ["", "Coder-Overloaded: 1\r\n"])
async def test_server_without_room_gets_no_dearer_attempt(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes connections in place of an answer, as some middleboxes do, and says so elsewhere."""
    monkeypatch.setattr(carried_stream, "PLAIN_TIMEOUT", 60.0)
    async with _server(answers_plain=True, closes=True, sign=sign) as (server, port):
        with trio.fail_after(60), pytest.raises(NetError):
            await connect_websocket(DialPolicy(f"http://127.0.0.1:{port}", proxies={}), "/link")
        stripped = ["GET /derp", "GET /derp", PLAIN, "POST /link"]
        expected = ["GET /link", PLAIN, *([] if sign else stripped)]
        assert sorted(set(await requests_of(server, len(expected) - (not sign)))) == sorted(set(expected))


@pytest.mark.parametrize(
    ("status", "retry_after", "answers_plain", "may_be"),
    [
        (400, 0.0, False, True),
        (400, 5.0, True, False),
        (502, 0.0, True, True),
        (502, 0.0, False, False),
        (503, 5.0, True, False),
    ],
)
async def test_busy_proxy_strips_nothing(
    status: int, retry_after: float, answers_plain: bool, may_be: bool, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answers_plain:
        be_patient_with_plain_requests(monkeypatch)
    page = HttpError(status, "a page")
    page.retry_after = retry_after
    async with _server(answers_plain) as (_, port):
        policy = DialPolicy(f"http://127.0.0.1:{port}", proxies={})
        assert await carried_stream.may_be_stripped(policy, page) == may_be


@pytest.mark.parametrize("answers_plain", [False, True])
async def test_relay_is_carried_past_middleboxes_only(
    answers_plain: bool, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answers_plain:
        be_patient_with_plain_requests(monkeypatch)
    async with _server(answers_plain) as (server, port):
        node = DerpNode(name="1a", region_id=1, host_name="127.0.0.1", derp_port=port, force_http=True)
        region = DerpRegion(region_id=1, region_code="x", region_name="x", nodes=(node,), embedded_relay=True)
        with trio.fail_after(60), pytest.raises(RelayError):
            await RelayDialer(DialPolicy(f"http://127.0.0.1:{port}", proxies={}))(region, node)
        requests = await requests_of(server, 3 if answers_plain else 2)
        assert (len(requests) > 2) == answers_plain
