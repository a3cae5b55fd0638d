"""Dialling a relay by its map: addresses, certificate, transport."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion
from coder.mesh.drivers.transport import DerpTransport
from coder.mesh.errors import RelayError
from coder.net.dial import connect
from coder.net.errors import NetError
from coder.net.policy import DialPolicy
from coder.tailnet.relay import UPGRADE, WEBSOCKET, RelayDialer, _RelayTransportRefused
from tests.kit.stand_ins.certificates import Authority

NODE = DerpNode("7a", 7, "relay.test")
REGION = DerpRegion(7, "x", "X", (NODE,))
SERVER = DialPolicy("https://coder.test", proxies={}, address="192.0.2.7")


@pytest.mark.parametrize(
    ("ipv4", "ipv6", "dialled"),
    [
        ("", "", {("relay.test", None)}),
        ("192.0.2.1", "none", {("192.0.2.1", None)}),
        ("192.0.2.1", "", {("192.0.2.1", None), ("relay.test", "::")}),
        ("192.0.2.1", "2001:db8::1", {("192.0.2.1", None), ("2001:db8::1", None)}),
        ("none", "", {("relay.test", "::")}),
        ("2001:db8::1", "nonsense", set()),
        ("none", "none", set()),
    ],
)
async def test_node_is_dialled_by_map(
    monkeypatch: pytest.MonkeyPatch, ipv4: str, ipv6: str, dialled: set[tuple[str, str | None]]
) -> None:
    asked = set()

    async def refuse(host: str, _port: int, *, local_address: str | None = None, **_: object) -> trio.SocketStream:
        asked.add((host, local_address))
        raise OSError

    monkeypatch.setattr(trio, "open_tcp_stream", refuse)
    node = replace(NODE, ipv4=ipv4, ipv6=ipv6)
    with pytest.raises(RelayError):
        await RelayDialer(SERVER)(REGION, node)
    assert asked == dialled
    asked.clear()
    with pytest.raises(RelayError):
        await RelayDialer(replace(SERVER, proxies={"https": "http://box.test:3128"}))(REGION, node)
    assert asked == {("box.test", None)}, "a proxy resolves names"


async def test_first_address_family_wins() -> None:
    """A host with a route by one family only; a family with a given address does no name lookup."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    with trio.fail_after(60):
        async with listener:
            for places in (("127.0.0.1", "::1"), ("127.0.0.1", ""), ("", "none")):
                policy = DialPolicy(f"http://localhost:{port}", proxies={}, by_family=places)
                async with await connect(policy) as stream:
                    assert stream.socket.getpeername()[0] == "127.0.0.1"  # type: ignore[attr-defined]
            with pytest.raises(NetError, match="cannot connect to localhost"):
                await connect(DialPolicy(f"http://localhost:{port}", proxies={}, by_family=("none", "")))


def relay_greeting(context: ssl.SSLContext) -> Callable[[trio.SocketStream], Awaitable[None]]:
    async def greet(stream: trio.SocketStream) -> None:
        try:
            await trio.SSLStream(stream, context, server_side=True).do_handshake()
        except (trio.BrokenResourceError, ssl.SSLError):
            pass  # the client rejected our certificate

    return greet


@pytest.mark.parametrize(
    ("shown", "asked", "problem"),
    [
        ("relay.test", "", ""),
        ("other.test", "", "not trusted"),
        ("other.test", "other.test", ""),
        ("*.fleet.test", "a.fleet.test", ""),
        ("*.fleet.test", "b.a.fleet.test", "not for b.a.fleet.test"),
        ("relay.test", "other.test", "the certificate of relay.test is not for other.test"),
        ("*.test", "other.test", "not for other.test"),
    ],
)
async def test_relay_certificate_name(tmp_path: Path, shown: str, asked: str, problem: str) -> None:
    authority, heard = Authority(tmp_path), []
    context = authority.server_context(shown)
    context.sni_callback = lambda _socket, name, _context: heard.append(name)

    dialer = RelayDialer(DialPolicy("https://coder.test", ca_file=authority.file, proxies={}))
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, relay_greeting(context), 0, host="127.0.0.1"))
            node = replace(
                NODE, ipv4="127.0.0.1", ipv6="none", derp_port=listener.socket.getsockname()[1], cert_name=asked
            )
            policy = dialer._policy_of(REGION, node)
            if problem:
                with pytest.raises(NetError, match=problem):
                    await connect(policy)
            else:
                await trio.aclose_forcefully(await connect(policy))
            nursery.cancel_scope.cancel()
    assert heard == ["relay.test"], "SNI is the host, regardless of the certificate name"


async def test_unknown_authority_is_rejected(tmp_path: Path) -> None:
    context = Authority(tmp_path).server_context("other.test")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, relay_greeting(context), 0, host="127.0.0.1"))
            url = f"https://localhost:{listener.socket.getsockname()[1]}"
            with pytest.raises(NetError, match="not trusted"):
                await connect(DialPolicy(url, proxies={}, certificate_name="other.test"))
            nursery.cancel_scope.cancel()


async def test_nodes_fall_back_separately(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes dialled concurrently: a failing one does not affect the other's state."""
    from coder.mesh.drivers.pipe import pipe_pair

    tried = []

    async def climb(self: RelayDialer, kind: str, policy: DialPolicy, reason: str) -> DerpTransport:
        host = policy.origin.hostname or ""
        tried.append((host, kind))
        if host == "dead.test":
            await trio.sleep(2)
            raise NetError("unreachable", "cannot connect", "")
        await trio.sleep(1)
        if kind == UPGRADE:
            raise _RelayTransportRefused("stripped")
        await trio.sleep(2)
        return DerpTransport(pipe_pair()[0], kind=kind)

    monkeypatch.setattr(RelayDialer, "_connect", climb)
    dialer = RelayDialer(SERVER)
    dead, living = replace(NODE, name="7d", host_name="dead.test"), NODE

    async def fails() -> None:
        with pytest.raises(RelayError):
            await dialer(REGION, dead)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fails)
        await dialer(REGION, living)
    assert [kind.verdict for kind in dialer.transports(7)] == ["stripped", "works", "not tried"]
    tried.clear()
    await dialer(REGION, living)
    assert tried == [("relay.test", WEBSOCKET)], "it keeps the working transport"
