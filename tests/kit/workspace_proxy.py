"""A workspace proxy in the test's own process, beside the server it belongs to."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import trio

from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.server import RunningProxy, open_proxy
from tests.kit.coderd import World

PROXIES = "/api/v2/workspaceproxies"


async def new_proxy(world: World, name: str = "sydney") -> str:
    """Makes a proxy at the server; returns its token."""
    made = await world.post(PROXIES, {"name": name, "display_name": "", "icon": ""})
    assert made.status_code == 201, made.text
    return str(made.json()["proxy_token"])


async def free_port() -> int:
    """A port that was free a moment ago: a proxy must know its address before it listens."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = int(listener.socket.getsockname()[1])
    await listener.aclose()
    return port


async def proxy_config(world: World, token: str, *, derp_only: bool = False, **settings: Any) -> ProxyConfig:
    port = await free_port()
    values: dict[str, Any] = {
        "http_address": f"127.0.0.1:{port}",
        "access_url": f"http://127.0.0.1:{port}",
        "wildcard_access_url": "*.proxy.test",
        **settings,
    }
    return ProxyConfig(world.server.url, Secret(token), ServerConfig(**values), derp_only)


@contextlib.asynccontextmanager
async def running_proxy(world: World, token: str, **settings: Any) -> AsyncIterator[RunningProxy]:
    """A registered proxy of `world`."""
    async with open_proxy(await proxy_config(world, token, **settings)) as proxy:
        yield proxy
