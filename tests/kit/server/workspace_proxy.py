"""A workspace proxy in the test's own process, next to its server."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

from coder.base.secret import Secret
from coder.coderd.config.settings import ServerConfig
from coder.wsproxy import authorizer
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.metrics import BY_HOST, BY_PATH
from coder.wsproxy.server import RunningProxy, open_proxy
from tests.kit.api.http_clients import http_client
from tests.kit.free_ports import free_port
from tests.kit.server.server_in_process import World

PROXIES = "/api/v2/workspaceproxies"
MEASURED = {"prometheus_enable": True, "prometheus_address": "127.0.0.1:0"}

authorizer.CHECK_INTERVAL = 3600.0  # as SECOND_LOOKS of the server


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


async def scraped(proxy: RunningProxy) -> dict[str, float]:
    """Every series of a proxy that runs with `MEASURED`, by its name with labels."""
    async with http_client() as client:
        answer = await client.get(f"http://127.0.0.1:{proxy.metrics_port}/metrics")
    assert answer.status_code == 200
    return {name: float(value) for name, value in re.findall(r"(?m)^([a-z]\w+(?:\{.*\})?) (\S+)$", answer.text)}


async def all_is_measured(proxy: RunningProxy) -> None:
    """After applications under a path and on hosts, a terminal and the relay were used."""
    found = await scraped(proxy)
    requests = 'coderd_api_requests_processed_total{code="%s",method="GET",path="%s"}'
    pty = "/api/v2/workspaceagents/{agent}/pty"
    for code, path in (
        ("200", BY_PATH),
        ("303", BY_PATH),
        ("404", BY_PATH),
        ("101", BY_PATH),
        ("200", BY_HOST),
        ("303", BY_HOST),
        ("101", pty),
        ("101", "/derp"),
        ("200", "/healthz-report"),
    ):
        assert found.pop(requests % (code, path), 0) >= 1, (code, path)
    assert found[f'coderd_api_websocket_durations_seconds_count{{path="{pty}"}}'] >= 1
    for name in (
        "coder_derp_server_accepts_total",
        "coder_derp_server_packets_received_total",
        "coderd_wsproxy_app_sessions",
        "coderd_wsproxy_registered",
        "process_start_time_seconds",
        "promhttp_metric_handler_requests_in_flight",
    ):
        assert found[name] >= 1, name
