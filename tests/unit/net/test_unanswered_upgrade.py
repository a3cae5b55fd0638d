"""An upgrade without an answer: carried by plain requests only where those are answered."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

from coder.mesh.derp_map import DerpNode, DerpRegion
from coder.mesh.drivers.derp_connection import RetryDelays
from coder.mesh.drivers.derp_regions import CONNECT_TIMEOUT
from coder.mesh.errors import RelayError
from coder.net import carried_stream, http1, websocket
from coder.net.errors import HttpError, NetError, UnansweredUpgrade
from coder.net.policy import OVERLOAD_BELIEVED, STRIPPED_FOR, DialPolicy, ServerKnowledge
from coder.net.websocket import accept_key, connect_websocket
from coder.tailnet import relay
from coder.tailnet.relay import RelayDialer


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

    async def serve(self, stream: trio.SocketStream) -> None:
        head = b""
        with contextlib.suppress(trio.BrokenResourceError):
            while b"\r\n\r\n" not in head:
                if not (data := await stream.receive_some()):
                    return
                head += data
            if self.answers_plain and b"upgrade:" not in head.lower():
                page = f"HTTP/1.1 404 Not Found\r\n{self.sign}Content-Length: 0\r\nConnection: close\r\n\r\n"
                await stream.send_all(page.encode())
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
async def _server(answers_plain: bool, **options: Any) -> AsyncIterator[int]:
    server = SilentServer(answers_plain, **options)
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(trio.serve_tcp, server.serve, 0)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade: Callable[..., Any] = http1.upgrade
    monkeypatch.setattr(websocket, "upgrade", lambda policy, path, fields, *_: upgrade(policy, path, fields, 0.2))
    monkeypatch.setattr(carried_stream, "PLAIN_TIMEOUT", 0.2)
    monkeypatch.setattr(carried_stream, "CHEAP_UPGRADE_TIMEOUT", 0.2)
    monkeypatch.setattr(relay, "TRANSPORT_TIMEOUT", 0.2)


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths for which a carried stream was opened; none opens."""
    paths: list[str] = []

    async def connect_carried(_: DialPolicy, path: str, *_rest: Any, **_named: Any) -> Any:
        await trio.lowlevel.checkpoint()
        paths.append(path)
        raise NetError("protocol", "no carried streams here")

    monkeypatch.setattr(carried_stream, "connect_carried", connect_carried)
    return paths


def be_patient_with_plain_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may need longer for an answer than an upgrade gets that is never answered."""
    monkeypatch.setattr(carried_stream, "PLAIN_TIMEOUT", 60.0)


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where cheap upgrades are answered as well."""
    be_patient_with_plain_requests(monkeypatch)
    monkeypatch.setattr(carried_stream, "CHEAP_UPGRADE_TIMEOUT", 60.0)


def policy_of(port: int) -> DialPolicy:
    return DialPolicy(f"http://127.0.0.1:{port}", proxies={})


@pytest.mark.parametrize("answers_plain", [False, True])
async def test_websocket_is_carried_past_middleboxes_only(
    answers_plain: bool, impatient: None, carried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if answers_plain:
        be_patient_with_plain_requests(monkeypatch)
    async with _server(answers_plain) as port:
        with trio.fail_after(60), pytest.raises(UnansweredUpgrade):
            await connect_websocket(policy_of(port), "/link")
    assert carried == ["/link"] * answers_plain


@pytest.mark.parametrize(
    ("relay_status", "is_carried"),
    [
        ("", False),
        ("404 Not Found", False),
        ("429 Too Many Requests", False),
        ("426 Upgrade Required", True),
        ("502 Bad Gateway", True),
    ],
    ids=["relay", "no relay", "budget used up", "stripped", "proxy that cannot pass it"],
)
async def test_busy_server_gets_no_dearer_attempt(
    relay_status: str, is_carried: bool, impatient: None, carried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers what is cheap, and lets agents wait."""
    be_patient(monkeypatch)
    async with _server(answers_plain=True, is_busy=True, relay_status=relay_status) as port:
        with trio.fail_after(60), pytest.raises(UnansweredUpgrade):
            await connect_websocket(policy_of(port), "/link")
    assert carried == ["/link"] * is_carried


@pytest.mark.parametrize("sign", ["", "Coder-Overloaded: 1\r\n"])
async def test_server_without_room_gets_no_dearer_attempt(
    sign: str, carried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes connections in place of an answer, as some middleboxes do, and says so elsewhere."""
    be_patient(monkeypatch)
    async with _server(answers_plain=True, closes=True, sign=sign) as port:
        with trio.fail_after(60), pytest.raises(NetError):
            await connect_websocket(policy_of(port), "/link")
    assert carried == ["/link"] * (not sign)


def test_sign_of_overload_is_not_believed_for_ever() -> None:
    learned = ServerKnowledge()

    def believes(now: float, *, is_shown: bool = True) -> bool:
        return learned.believes_overload("x", now, is_shown=is_shown)

    assert believes(1000) and believes(1000 + OVERLOAD_BELIEVED - 1)
    assert not believes(1000 + OVERLOAD_BELIEVED)
    assert not believes(1200, is_shown=False)
    assert believes(1201), "another overload"
    assert not believes(1201 + OVERLOAD_BELIEVED)
    assert believes(1201 + OVERLOAD_BELIEVED + STRIPPED_FOR + 1), "not shown for STRIPPED_FOR: another one"


@pytest.mark.parametrize(
    ("status", "retry_after", "answers_plain", "is_busy", "may_be"),
    [
        (400, 0.0, False, False, True),
        (400, 5.0, True, False, False),
        (502, 0.0, True, False, True),
        (502, 0.0, True, True, False),
        (502, 0.0, False, False, False),
        (520, 0.0, True, True, False),
        (503, 5.0, True, False, False),
    ],
)
async def test_busy_proxy_strips_nothing(
    status: int,
    retry_after: float,
    answers_plain: bool,
    is_busy: bool,
    may_be: bool,
    impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if answers_plain:
        be_patient_with_plain_requests(monkeypatch)
    if is_busy:
        be_patient(monkeypatch)
    page = HttpError(status, "a page")
    page.retry_after = retry_after
    async with _server(answers_plain, is_busy=is_busy) as port:
        with trio.fail_after(120):
            assert await carried_stream.may_be_stripped(policy_of(port), page) == may_be


def _region(host: str, port: int) -> DerpRegion:
    node = DerpNode(name="1a", region_id=1, host_name=host, derp_port=port, force_http=True)
    return DerpRegion(region_id=1, region_code="x", region_name="x", nodes=(node,), embedded_relay=True)


@pytest.mark.parametrize("answers_plain", [False, True])
async def test_relay_is_carried_past_middleboxes_only(
    answers_plain: bool, impatient: None, carried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if answers_plain:
        be_patient_with_plain_requests(monkeypatch)
    async with _server(answers_plain) as port:
        region = _region("127.0.0.1", port)
        with trio.fail_after(60), pytest.raises(RelayError):
            await RelayDialer(policy_of(port))(region, region.nodes[0])
    assert carried == ["/derp"] * answers_plain


@pytest.mark.parametrize("round_trip", [0.02, 0.4])
@pytest.mark.parametrize(("swallowed", "kind"), [({b"derp"}, "websocket"), ({b"derp", b"websocket"}, "stream")])
async def test_far_relay_behind_a_middlebox_is_reached(
    round_trip: float, swallowed: set[bytes], kind: str, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection takes three round trips (TCP, a proxy, TLS); an attempt has ten seconds."""

    async def serve(stream: trio.StapledStream[Any, Any]) -> None:
        data = b""
        with contextlib.suppress(trio.BrokenResourceError):
            while piece := await stream.receive_some():
                data += piece
                if not data.endswith(b"\r\n\r\n"):
                    continue
                await trio.sleep(round_trip)
                await stream.send_all(await _middlebox_answer(data, swallowed))
                data = b""

    async def connect(*_: Any, **_named: Any) -> Any:
        await trio.sleep(3 * round_trip)
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(serve, theirs)
        return ours

    monkeypatch.setattr(http1, "connect", connect)
    region, delays = _region("x.test", 80), RetryDelays()
    dialer = RelayDialer(DialPolicy("http://x.test", proxies={}))
    async with trio.open_nursery() as nursery:
        with trio.fail_after(30):
            while True:
                began = trio.current_time()
                with trio.move_on_after(CONNECT_TIMEOUT):
                    transport = await dialer(region, region.nodes[0])
                    break
                await trio.sleep(delays.after(trio.current_time() - began, was_connected=False))
        assert transport.kind == kind
        nursery.cancel_scope.cancel()


async def _middlebox_answer(head: bytes, swallowed: set[bytes]) -> bytes:
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
    if (protocol := fields.get(b"Upgrade", b"").lower()) in swallowed:
        await trio.sleep_forever()
    if protocol == b"websocket":
        accept = accept_key(fields[b"Sec-WebSocket-Key"].decode())
        answer = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n"
        return b"HTTP/1.1 101 Switching Protocols\r\n" + answer.encode() + b"\r\n\x82\x05hello"
    carrier = b"Coder-Carrier: " + b"a" * 32 + b"\r\n" if head.startswith(b"POST") else b""
    return b"HTTP/1.1 200 OK\r\n" + carrier + b"Content-Length: 0\r\n\r\n"
