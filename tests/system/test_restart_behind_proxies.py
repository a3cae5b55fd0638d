"""A server that restarts behind nginx, haproxy and caddy: the agent hears their error pages and comes back by itself.

The proxies run by the guide's configurations. A relay in front of the server stands for it: while it is down, the
proxy finds nothing to connect to. About five seconds a proxy.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from coder.base.secret import Secret
from coder.net.policy import DialPolicy
from tests.kit.agents.real_agent import running_agent
from tests.kit.agents.scripted_agent import eventually, workspace_world
from tests.kit.free_ports import free_port
from tests.kit.stand_ins.certificates import Authority
from tests.system.test_reverse_proxies import KINDS, running_proxy

pytestmark = pytest.mark.system


class Relay:
    """Forwards connections from one port to another, and can be away."""

    def __init__(self, port: int, target: int) -> None:
        self._port, self._target = port, target
        self._scope = trio.CancelScope()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        listeners = await trio.open_tcp_listeners(self._port, host="127.0.0.1")
        with trio.CancelScope() as self._scope:
            task_status.started()
            await trio.serve_listeners(self._forward, listeners)

    def stop(self) -> None:
        """Close the port and every connection, as the end of a process does."""
        self._scope.cancel()

    async def _forward(self, client: trio.SocketStream) -> None:
        server = await trio.open_tcp_stream("127.0.0.1", self._target)
        async with server, trio.open_nursery() as nursery:
            nursery.start_soon(self._copy, client, server, nursery)
            nursery.start_soon(self._copy, server, client, nursery)

    async def _copy(self, source: trio.SocketStream, target: trio.SocketStream, nursery: trio.Nursery) -> None:
        try:
            async for piece in source:
                await target.send_all(piece)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the other side is gone, and so is this connection
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def relayed(port: int, target: int) -> AsyncIterator[tuple[trio.Nursery, Relay]]:
    async with trio.open_nursery() as nursery:
        relay = Relay(port, target)
        await nursery.start(relay.run)
        yield nursery, relay
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", sorted(KINDS))
async def test_agent_returns_after_a_restart(name: str, open_path: Path) -> None:
    port, front, inner = free_port(), free_port(), free_port()
    authority = Authority(open_path)
    url = f"https://localhost:{port}"
    with running_proxy(name, open_path, authority, port, f"127.0.0.1:{front}"):
        settings: dict[str, Any] = {"access_url": url, "http_address": f"127.0.0.1:{inner}"}
        async with workspace_world(**settings) as view, relayed(front, inner) as (nursery, relay):
            policy = DialPolicy(url, token=Secret(view.world.token), ca_file=authority.file, proxies={})

            async def status(expected: str) -> None:
                async def reached() -> bool:
                    return bool((await view.agent())["status"] == expected)

                await eventually(reached)

            async with running_agent(view, policy, open_path / "agent"):
                relay.stop()
                await status("disconnected")
                await _is_away(url, authority)
                await nursery.start(relay.run)
                await status("connected")


async def _is_away(url: str, authority: Authority) -> None:
    """The proxy says so in a page of its own, which is no answer of ours."""
    async with httpx.AsyncClient(verify=_context(authority), timeout=60) as client:
        answer = await client.get(f"{url}/api/v2/buildinfo")
    assert answer.status_code in {502, 503, 504} and "x-coder-build-version" not in answer.headers


def _context(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.file)
