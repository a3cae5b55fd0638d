"""Health of the workspace's apps: an HTTP GET at each app's interval, changes reported within a second.

A status below 500 is healthy immediately; an app becomes unhealthy at the failure after `threshold` failures
(docs/protocol/agents.md#limits).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from coder.agent.state import AgentState
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.rpc.durations import seconds
from coder.rpc.proto import agent_pb2

Send = Callable[[agent_pb2.BatchUpdateAppHealthRequest], Awaitable[object]]
REPORT_INTERVAL = 1.0
SHORTEST_INTERVAL = 0.1
"""Seconds (ours). Templates count whole seconds; an interval of a microsecond would be a busy loop."""


class AppHealth:
    """Prober and reporter for the apps of the current manifest."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._health: dict[bytes, agent_pb2.AppHealth.ValueType] = {}
        self._sent: dict[bytes, agent_pb2.AppHealth.ValueType] = {}
        self._changed = trio.Event()

    async def loop(self, send: Send) -> None:
        """Run for one manifest, until cancelled."""
        manifest = self._state.manifest
        apps = [app for app in manifest.apps if _probed(app)] if manifest else []
        self._health = {app.id: self._health.get(app.id, agent_pb2.INITIALIZING) for app in apps}
        async with trio.open_nursery() as nursery:
            for app in apps:
                nursery.start_soon(self._probe_loop, app)
            while True:
                await trio.sleep(REPORT_INTERVAL)
                if self._health != self._sent:
                    snapshot = dict(self._health)
                    request = agent_pb2.BatchUpdateAppHealthRequest()
                    for ident, health in snapshot.items():
                        request.updates.append(
                            agent_pb2.BatchUpdateAppHealthRequest.HealthUpdate(id=ident, health=health)
                        )
                    await send(request)
                    self._sent = snapshot
                while self._health == self._sent:
                    self._changed = trio.Event()
                    await self._changed.wait()

    async def _probe_loop(self, app: agent_pb2.WorkspaceApp) -> None:
        interval = max(SHORTEST_INTERVAL, seconds(app.healthcheck.interval))
        failures = 0
        while True:
            await trio.sleep(interval)
            if await probe(app.healthcheck.url, max(0.001, interval - 0.001)):
                failures = 0
                self._set_health(app, agent_pb2.HEALTHY)
            elif failures < app.healthcheck.threshold:
                failures += 1
            else:
                self._set_health(app, agent_pb2.UNHEALTHY)

    def _set_health(self, app: agent_pb2.WorkspaceApp, health: agent_pb2.AppHealth.ValueType) -> None:
        self._health[app.id] = health
        self._changed.set()


def _probed(app: agent_pb2.WorkspaceApp) -> bool:
    check = app.healthcheck
    return bool(check.url and check.threshold > 0 and seconds(check.interval) > 0)


async def probe(url: str, timeout: float) -> bool:
    """Send one health request. Proxies never apply: the app runs on this machine."""
    from urllib.parse import urlsplit

    import h11

    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # brackets without an end, port 99999
        return False
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    policy = DialPolicy(f"{parts.scheme}://{parts.netloc}", insecure=True, proxies={}, timeout=timeout)
    try:
        with trio.fail_after(timeout):
            async with HttpClient(policy).stream("GET", target, head_timeout=timeout) as answer:
                return answer.status < 500
    except (NetError, HttpError, trio.TooSlowError, OSError):
        return False
    except (h11.LocalProtocolError, ValueError):  # a space in the path, a label of 64 letters in the host
        return False
