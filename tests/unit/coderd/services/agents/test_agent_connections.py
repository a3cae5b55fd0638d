"""Agents that fall silent, leave, or are replaced: supervision of a connection on a simulated clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing
from outcome import Error, Outcome, Value

from coder.base.clock import FakeClock
from coder.coderd.services.agents import agent_connections
from coder.coderd.services.agents.agent_connections import PINGS, AgentConnections, Pings, track_connection
from coder.coderd.services.agents.report_batches import Liveness
from coder.rpc import yamux
from coder.rpc.session import open_session

AGENT = UUID(int=1)
NOW = datetime(2026, 11, 21, tzinfo=UTC)


class Scene:
    """A server whose database is a list of its queries."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.place: Any = SimpleNamespace(agent=SimpleNamespace(id=AGENT, first_connected_at=NOW), build_id=UUID(int=5))
        self.current: Any = self.place
        self.calls: list[tuple[str, float]] = []
        api: Any = SimpleNamespace(report_batches=SimpleNamespace(liveness=SimpleNamespace(submit=self.mark_alive)))
        self.ctx: Any = SimpleNamespace(
            services=SimpleNamespace(api=api), clock=FakeClock(), db=self, stopping=trio.Event(), nursery=nursery
        )
        api.agent_connections = AgentConnections(self.ctx)  # type: ignore[arg-type]
        self.ended: list[str | None] = []
        self.is_database_away = False

    async def run(self, fn: Any, *args: Any) -> Any:
        if fn is agent_connections._mark_disconnected:
            self.ended.append(args[-1])
        await trio.lowlevel.checkpoint()
        self.calls.append((fn.__name__.strip("_"), trio.current_time()))
        return None

    def mark_alive(self, _report: Liveness, finish: Callable[[Outcome[bool]], None]) -> None:
        if self.is_database_away:
            finish(Error(OSError("database is restarting")))
            return
        self.calls.append(("alive", trio.current_time()))
        finish(Value(self.current is not None))

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def test_ping_times_are_those_of_the_latest_pings() -> None:
    pings = Pings()
    assert pings.reading() is None
    for _ in range(PINGS):
        pings.answered(9.0)
    for _ in range(PINGS - 1):
        pings.answered(0.25)
    pings.answered(0.5)
    assert pings.reading() == {"round_trip_ms": 250, "loss_percent": round(100 / PINGS, 1)}


async def test_frozen_agent_disconnects_in_17_seconds(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    view_context = Scene(nursery)
    left, _frozen = trio.testing.memory_stream_pair()
    async with (
        open_session(left, "server") as session,
        track_connection(view_context.ctx, view_context.place, session, "2.10"),
    ):
        await session.wait_closed()
        assert trio.current_time() == pytest.approx(17)
        assert "no answer to a ping" in session.reason
    assert view_context.names() == ["mark_connected", "alive", "mark_disconnected"]
    assert view_context.ended == ["silent"]


async def test_agent_that_froze_later_disconnects_in_17_seconds(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    """The session's own keepalive would wait for the 55th second: the pings of presence are answered."""
    view_context = Scene(nursery)
    left, right = trio.testing.memory_stream_pair()
    agent = yamux.Yamux(client=True)
    async with open_session(left, "server") as session, trio.open_nursery() as tasks:

        async def answer_until_frozen() -> None:
            with trio.move_on_after(29):
                async for data in right:
                    agent.receive_untrusted(bytes(data))
                    await right.send_all(agent.take_output(1 << 20))

        tasks.start_soon(answer_until_frozen)
        async with track_connection(view_context.ctx, view_context.place, session, "2.10"):
            await session.wait_closed()
            assert trio.current_time() == pytest.approx(42)
            assert "no answer to a ping" in session.reason
    assert view_context.ended == ["silent"]


async def test_closed_connection_noticed_immediately(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    view_context = Scene(nursery)
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "server") as session, trio.open_nursery() as tasks:
        tasks.start_soon(right.aclose)
        async with track_connection(view_context.ctx, view_context.place, session, "2.10"):
            await session.wait_closed()
    assert view_context.calls[-1] == ("mark_disconnected", pytest.approx(0))
    assert view_context.ended == ["closed"]


async def test_answering_agent_marked_every_15_seconds(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    view_context = Scene(nursery)
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "server") as session, open_session(right, "client") as agent:
        async with track_connection(view_context.ctx, view_context.place, session, "2.10"):
            with trio.move_on_after(50):
                await session.wait_closed()
        assert not agent.is_closed
    assert view_context.names() == ["mark_connected", "alive", "alive", "alive", "mark_disconnected"]


@pytest.mark.parametrize("late", [False, True], ids=["connected", "connecting"])
async def test_stopping_server_closes_sessions(
    late: bool, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    view_context = Scene(nursery)
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "server") as session, open_session(right, "client"):
        if late:
            view_context.ctx.stopping.set()
        async with track_connection(view_context.ctx, view_context.place, session, "2.10"):
            view_context.ctx.stopping.set()
            await session.wait_closed()
        assert session.reason == "the server stops"
        assert trio.current_time() == pytest.approx(0)
    assert view_context.ended == ["stopping"]


async def test_agent_with_revoked_token_disconnects(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    view_context = Scene(nursery)
    left, right = trio.testing.memory_stream_pair()
    async with (
        open_session(left, "server") as session,
        open_session(right, "client"),
        track_connection(view_context.ctx, view_context.place, session, "2.10"),
    ):
        view_context.current = None
        await session.wait_closed()
        assert session.reason == "build is outdated"
        assert trio.current_time() == pytest.approx(15)


async def test_last_connection_marks_end(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    view_context = Scene(nursery)
    left, right = trio.testing.memory_stream_pair()
    async with open_session(left, "server") as session, open_session(right, "client"):
        async with track_connection(view_context.ctx, view_context.place, session, "2.10"):
            async with track_connection(view_context.ctx, view_context.place, session, "2.10"):
                pass
            assert "mark_disconnected" not in view_context.names()
        assert view_context.names().count("mark_disconnected") == 1


async def test_database_outage_keeps_agents(autojump_clock: trio.testing.MockClock, nursery: trio.Nursery) -> None:
    view_context = Scene(nursery)
    view_context.is_database_away = True
    left, right = trio.testing.memory_stream_pair()
    async with (
        open_session(left, "server") as session,
        open_session(right, "client"),
        track_connection(view_context.ctx, view_context.place, session, "2.10"),
    ):
        await trio.sleep(40)
        assert not session.is_closed
