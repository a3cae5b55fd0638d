"""Speed tests of a page: server to agent over the overlay, and the bytes for browser to server.

The right is that of a terminal, which could send as much. Bytes and time of a test are limited, and tests at the same
time: they would measure each other, and take the line from other users.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from coder.api.agents.speed_tests import SpeedTestDirection, SpeedTestResult
from coder.api.base.refusals import BadGateway, Conflict, Invalid
from coder.appproxy.agents.dialing import dial, open_dialer
from coder.base.errors import CoderError
from coder.coderd.services.agents.agent_access import load_agent
from coder.coderd.services.agents.agent_http import require_connected
from coder.domain.access.policy import Subject
from coder.mesh.errors import MeshError
from coder.tailnet.speedtest import run_speedtest

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context
    from coder.mesh.description import PingResult

SPEEDTEST_PORT = 3
SECONDS = 3.0
"""Ours: length of a test."""
MOST_BYTES = 32 << 20
"""Ours: bytes after which a test ends earlier."""
MOST_TESTS = 2
"""Ours: tests of a server process at the same time."""
MAX_PAYLOAD = 8 << 20
"""Ours: bytes of a download or upload between browser and server."""
_PING_TIMEOUT = 2.0


class SpeedTests:
    """The running tests of a process."""

    def __init__(self) -> None:
        self._agents: set[UUID] = set()

    @contextlib.contextmanager
    def turn(self, agent_id: UUID) -> Iterator[None]:
        """Hold one of the few turns. Raises Conflict without a free one, and for a second test of an agent."""
        if agent_id in self._agents or len(self._agents) >= MOST_TESTS:
            raise Conflict("Another speed test is running.", "Try again in a few seconds.")
        self._agents.add(agent_id)
        try:
            yield
        finally:
            self._agents.remove(agent_id)


async def run_test(ctx: Context, subject: Subject, agent_id: UUID, direction: SpeedTestDirection) -> SpeedTestResult:
    """Measure the throughput between this server and the agent.

    Raises NotFound, Forbidden, Invalid (not connected), Conflict (another test runs), BadGateway.
    """
    require_connected(ctx, await load_agent(ctx, subject, agent_id, "ssh"))
    with ctx.services.api.speed_tests.turn(agent_id):
        stream = await dial(ctx, agent_id, SPEEDTEST_PORT)
        try:
            overall = (await run_speedtest(stream, direction, SECONDS, MOST_BYTES))[-1]
        except CoderError as error:
            raise BadGateway("The speed test failed.", error.message) from error
        finally:
            stream.abort()
        ping = await _ping(ctx, agent_id)
    return SpeedTestResult(
        direction=direction,
        bytes=overall.size,
        seconds=round(overall.end - overall.start, 3),
        mbits=round(overall.mbits, 2),
        via=ping.via if ping else "",
        round_trip_ms=round(ping.latency_s * 1000, 1) if ping else None,
    )


async def _ping(ctx: Context, agent_id: UUID) -> PingResult | None:
    dialer = open_dialer(ctx)
    key = dialer.controller.public_key_of(agent_id)
    try:
        return await dialer.node.ping(key, _PING_TIMEOUT) if key is not None else None
    except MeshError:
        return None


async def make_payload(ctx: Context, subject: Subject, agent_id: UUID, count: int) -> bytes:
    """Return random bytes for a download, which no compression shortens. Raises NotFound, Forbidden, Invalid."""
    await require_right(ctx, subject, agent_id)
    if not 0 <= count <= MAX_PAYLOAD:
        raise Invalid("Invalid number of bytes.", f"It must be between 0 and {MAX_PAYLOAD}.")
    return os.urandom(count)


async def require_right(ctx: Context, subject: Subject, agent_id: UUID) -> None:
    """Require the right to connect to the agent. Raises NotFound, Forbidden."""
    await load_agent(ctx, subject, agent_id, "ssh")
