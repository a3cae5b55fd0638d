"""Servers whose clocks differ by minutes: they judge liveness by the database's clock."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
from sqlalchemy import event

from coder.base.clock import SystemClock
from coder.base.secret import Secret
from coder.client.link import open_link
from coder.coderd.app import open_server
from coder.coderd.services.foundation.database_clock import DatabaseClock
from coder.net.dial import DialPolicy
from tests.kit.agents.real_agent import exchange, running_overlay_agent
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually, workspace_world
from tests.kit.api.http_clients import http_client
from tests.kit.free_ports import free_port
from tests.kit.provisioners.scripted_provisioner import Answers, working_daemon
from tests.kit.server.server_in_process import World

SKEW = timedelta(minutes=5)


class ShiftedClock(SystemClock):
    """The clock of a machine that is ahead of all others."""

    def now(self) -> datetime:
        return super().now() + SKEW


@contextlib.asynccontextmanager
async def skewed_replica(world: World) -> AsyncIterator[World]:
    """Yield a second server on the database of `world`, on a machine with a wrong clock."""
    address = f"127.0.0.1:{free_port()}"
    config = replace(world.ctx.config, http_address=address, derp_server_relay_url=f"http://{address}")
    clock = DatabaseClock(ShiftedClock())
    async with open_server(config, clock=clock) as server, http_client(server.url) as client:
        yield World(server, client, world.token, world.user_id, world.organization_id)


@contextlib.asynccontextmanager
async def two_servers() -> AsyncIterator[tuple[AgentWorld, World]]:
    """Yield a workspace at a server with a right clock, and another server with a wrong one."""
    address = f"127.0.0.1:{free_port()}"
    settings: dict[str, Any] = {"http_address": address, "derp_server_relay_url": f"http://{address}"}
    async with workspace_world(**settings) as view_context, skewed_replica(view_context.world) as other:
        yield view_context, other


@contextlib.contextmanager
def recorded_times(world: World) -> Iterator[list[tuple[str, datetime]]]:
    """Collect the recent times in the parameters of a server's statements."""
    times: list[tuple[str, datetime]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        for row in parameters if isinstance(parameters, list) else [parameters]:
            values = row.values() if isinstance(row, dict) else row or ()
            times.extend((statement, value) for value in values if isinstance(value, datetime) and value.tzinfo)

    engine = world.ctx.db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield times
    finally:
        event.remove(engine, "before_cursor_execute", note)


async def _status(world: World, view_context: AgentWorld) -> str:
    workspace = (await world.get(f"/api/v2/workspaces/{view_context.workspace['id']}")).json()
    return str(workspace["latest_build"]["resources"][0]["agents"][0]["status"])


async def test_skewed_servers_agree_on_liveness() -> None:
    async with two_servers() as (view_context, other):
        first = view_context.world
        with recorded_times(other) as times, trio.fail_after(120):
            for at in (first, other):  # a heartbeat of each is judged by both
                async with connected_agent(replace(view_context, world=at)), working_daemon(at, Answers()):
                    for judge in (first, other):

                        async def is_connected(judge: World = judge) -> bool:
                            return await _status(judge, view_context) == "connected"

                        await eventually(is_connected)
                        assert len((await judge.get("/api/v2/replicas")).json()) == 2
                        path = f"/api/v2/organizations/{first.organization_id}/provisionerdaemons"
                        daemons = (await judge.get(path)).json()
                        assert {item["status"] for item in daemons} == {"idle"}, (at is first, judge is first)
            assert len(other.ctx.services.relay.replicas.rows) == 2
        wrong = [item for item in times if abs(item[1] - datetime.now(UTC) - SKEW) < SKEW / 3]
        assert times
        assert not wrong


async def test_skewed_relay_carries_client_to_agent() -> None:
    async with two_servers() as (view_context, other), running_overlay_agent(view_context):
        policy = DialPolicy(other.url, token=Secret(other.token))
        with trio.fail_after(60):
            async with open_link(policy, view_context.agent_id, direct=False) as link:
                await link.wait_reachable()
                await exchange(await link.connect(7))


async def test_health_report_names_skew() -> None:
    async with two_servers() as (view_context, other):
        await view_context.world.ctx.services.relay.replicas.renew(view_context.world.ctx.nursery)
        for judge in (view_context.world, other):
            report = (await judge.get("/api/v2/debug/health?force=true")).json()["database"]
            assert report["severity"] == "warning"
            texts = [warning["message"] for warning in report["warnings"]]
            assert any("the clock is 300 seconds ahead of the database's" in text for text in texts)


class TestMeasuring:
    """`own` is the machine's clock, `answers` are (database's time, duration of the question, age since the first)."""

    @pytest.mark.parametrize(
        ("answers", "expected"),
        [
            pytest.param([(0.0, 0.01, 0)], 0.0, id="equal clocks"),
            pytest.param([(0.004, 0.01, 0)], 0.0, id="equal within the uncertainty"),
            pytest.param([(-300.0, 0.0, 0)], -300.0, id="ahead"),
            pytest.param([(300.0, 0.0, 0)], 300.0, id="behind"),
            pytest.param([(300.0, 0.01, 0), (300.9, 2.0, 10)], 300.0, id="a slow answer is ignored"),
            pytest.param([(300.0, 2.0, 0), (300.5, 0.01, 10)], 300.5, id="a quick answer counts"),
            pytest.param([(300.0, 0.01, 0), (400.0, 2.0, 10)], 400.0, id="a clock that was set counts"),
        ],
    )
    def test_answers(self, answers: list[tuple[float, float, float]], expected: float) -> None:
        start = datetime(2026, 1, 1, tzinfo=UTC)
        seconds = 0.0

        class Own(SystemClock):
            def now(self) -> datetime:
                return start + timedelta(seconds=seconds)

        clock = DatabaseClock(Own(), lambda: 50.0 + seconds)
        for offset, lasted, age in answers:
            seconds = age + lasted
            middle = start + timedelta(seconds=age + lasted / 2 + offset)
            clock.note(middle, Own().now(), 50.0 + age, 50.0 + seconds)
        seconds = 20.0
        assert (clock.now() - Own().now()).total_seconds() == pytest.approx(expected, abs=1e-4)
        assert clock.skew() == pytest.approx(-expected, abs=1e-4)

    def test_step_of_own_clock_has_no_effect(self) -> None:
        own = ShiftedClock()
        clock = DatabaseClock(own, lambda: 7.0)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        clock.note(at, own.now(), 7.0, 7.0)
        assert clock.now() == at
