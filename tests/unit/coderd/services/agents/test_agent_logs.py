"""Logs of many agents, stored together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import UUID, uuid4

import trio

from coder.coderd.services.agents.agent_logs import AgentLogLine, LogReport
from coder.coderd.services.agents.report_batches import ReportBatches
from coder.coderd.store.agents import system_agents
from coder.coderd.store.agents.agent_logs import LogAppend, NewAgentLog, append_all_logs, list_logs
from coder.domain.agents.agents import MIN_LINE_BYTES
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world

NOW = datetime.now(UTC)


async def _agent_of(world: World, name: str) -> UUID:
    build = (await new_workspace(world, name))["latest_build"]
    return UUID(next(item["agents"][0]["id"] for item in build["resources"] if item.get("agents")))


def _lines(*outputs: str) -> list[NewAgentLog]:
    return [NewAgentLog(NOW, output, "info") for output in outputs]


async def _outputs(world: World, agent: UUID) -> list[str]:
    return [row.output for row in await world.ctx.db.read(list_logs, agent)]


async def test_each_append_is_stored_whole_or_not() -> None:
    async with workspace_world() as (world, _):
        first, second = [await _agent_of(world, name) for name in ("a", "b")]
        source, room = uuid4(), 4 * MIN_LINE_BYTES

        async def append(*appends: tuple[UUID, Sequence[NewAgentLog]]) -> list[bool]:
            store = partial(append_all_logs, max_length=room)
            return await world.ctx.db.run(store, [LogAppend(agent, source, lines) for agent, lines in appends])

        # two of one agent, in order; the third has no room and closes its log, the other agent's goes on
        assert await append((first, _lines("1", "2")), (second, _lines("x")), (first, _lines("3"))) == [True] * 3
        assert await append((second, _lines("y")), (first, _lines("4", "5"))) == [True, False]
        assert await append((first, _lines("6")), (second, _lines("z", "w"))) == [False, True]
        assert await _outputs(world, first) == ["1", "2", "3"]
        assert await _outputs(world, second) == ["x", "y", "z", "w"]


async def test_reports_of_one_moment_share_a_transaction() -> None:
    async with workspace_world() as (world, _):
        agents = [await _agent_of(world, name) for name in ("a", "b")]
        known = [await world.ctx.db.read(system_agents.get_current_agent, agent) for agent in agents]
        units: list[str] = []
        reports = ReportBatches(world.ctx).logs
        run = world.ctx.db.run

        async def count(fn: object, *args: object) -> object:
            units.append(getattr(fn, "__name__", ""))
            return await run(fn, *args)  # type: ignore[arg-type]

        world.ctx.db.run = count  # type: ignore[method-assign, assignment]
        try:
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    agent = known[number % 2]
                    assert agent is not None
                    nursery.start_soon(reports.add, LogReport(agent, uuid4(), [AgentLogLine(NOW, str(number))]))
        finally:
            world.ctx.db.run = run  # type: ignore[method-assign]
        assert units.count("store_all_logs") == 1
        for number, agent_id in enumerate(agents):
            stored = sorted(map(int, await _outputs(world, agent_id)))
            assert stored == list(range(number, 20, 2))
