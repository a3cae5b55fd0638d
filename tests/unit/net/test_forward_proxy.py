"""Plain HTTP through a forward proxy: requests in absolute form, as proxies expect that allow CONNECT to 443 only."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

from coder.net.blocking import BlockingClient
from coder.net.errors import NetError
from coder.net.http1 import HttpClient, upgrade
from coder.net.policy import DialPolicy
from tests.kit.stand_ins.scripted_http_servers import OddServer, odd_server, reply

REFUSED = reply("no", status="403 Access violation", kind="text/plain")
UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nhello"


@pytest.fixture
def proxy() -> Iterator[OddServer]:
    with odd_server() as server:
        server.answer = lambda method, path: (
            REFUSED if method == "CONNECT" else UPGRADED if path.endswith("/up") else reply('{"ok":true}')
        )
        yield server


def policy(proxy: OddServer, url: str = "http://coder.test", login: str = "") -> DialPolicy:
    return DialPolicy(url, proxies={"http": proxy.url.replace("://", f"://{login}"), "https": proxy.url})


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://coder.test", "http://coder.test/api/v2/x?a=b"),
        ("http://coder.test:8080/base", "http://coder.test:8080/base/api/v2/x?a=b"),
        ("http://[2001:db8::1]:80", "http://[2001:db8::1]/api/v2/x?a=b"),
    ],
)
async def test_both_clients_use_absolute_form(proxy: OddServer, url: str, target: str) -> None:
    def blocking() -> object:
        return BlockingClient(policy(proxy, url)).request("POST", "/api/v2/x?a=b", json={}).json()

    assert await trio.to_thread.run_sync(blocking) == {"ok": True}
    async with HttpClient(policy(proxy, url)) as client:
        assert (await client.request("POST", "/api/v2/x?a=b", json={})).json() == {"ok": True}
    assert proxy.asked == [("POST", target)] * 2 and proxy.bodies == [b"{}"] * 2


async def test_upgrade_falls_back_to_absolute_form(proxy: OddServer) -> None:
    stream, headers, first = await upgrade(policy(proxy), "/up", [("Upgrade", "x"), ("Connection", "Upgrade")])
    await trio.aclose_forcefully(stream)
    assert headers["upgrade"] == "x" and b"hello".startswith(first)
    assert proxy.asked == [("CONNECT", "coder.test:80"), ("GET", "http://coder.test/up")]


async def test_https_still_uses_connect(proxy: OddServer) -> None:
    async with HttpClient(policy(proxy, "https://coder.test")) as client:
        with pytest.raises(NetError, match="refused the connection"):
            await client.request("GET", "/")
    assert proxy.asked == [("CONNECT", "coder.test:443")]


@pytest.mark.parametrize("status", ["407 Proxy Authentication Required", "401 Unauthorized"])
async def test_required_login_is_named(proxy: OddServer, status: str) -> None:
    page = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>".encode()
    proxy.answer = lambda _method, _path: page
    with pytest.raises(NetError) as caught:
        await trio.to_thread.run_sync(BlockingClient(policy(proxy)).request, "GET", "/")
    assert caught.value.code == "proxy" and "user and password" in caught.value.hint
    async with HttpClient(policy(proxy, login="u:p%40ss@")) as client:
        with pytest.raises(NetError, match="407"):
            await client.request("GET", "/")
