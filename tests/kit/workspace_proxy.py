"""A workspace proxy in the test's own process, beside the server it belongs to."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.wsproxy import authorizer
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.server import RunningProxy, open_proxy
from tests.kit.coderd import World
from tests.kit.ports import free_port

PROXIES = "/api/v2/workspaceproxies"

authorizer.JUDGE_EVERY = 3600.0  # as SECOND_LOOKS of the server


async def new_proxy(world: World, name: str = "sydney") -> str:
    """Makes a proxy at the server; returns its token."""
    made = await world.post(PROXIES, {"name": name, "display_name": "", "icon": ""})
    assert made.status_code == 201, made.text
    return str(made.json()["proxy_token"])


async def proxy_config(world: World, token: str, *, derp_only: bool = False, **settings: Any) -> ProxyConfig:
    port = free_port()
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
