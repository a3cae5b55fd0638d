"""Absences of agents: recorded by the server, explained by the agent after it reconnects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from coder.api.agents.agent_health import FlightRecord
from coder.base.ids import new_uuid
from coder.coderd.services.agents import agent_connections as connections
from coder.coderd.services.agents.disconnects import disconnect_start, note_disconnect, split_by_absence
from coder.coderd.store.agents import agents as agent_store
from coder.coderd.store.agents import system_agents
from coder.coderd.store.agents.disconnects import KEPT
from coder.domain.agents.disconnects import Ended
from tests.kit.agents.scripted_agent import AgentWorld, connected_agent, eventually, workspace_world

EARLIER, LATER = (datetime.now(UTC) - timedelta(hours=hours) for hours in (2, 1))
"Kinds of events in the agent's record."


def event(kind: str, at: datetime = EARLIER, **data: Any) -> dict[str, Any]:
    return {"at": at.isoformat(), "kind": kind, "data": data}


async def report(scene: AgentWorld, *events: dict[str, Any], **reading: Any) -> int:
    body = {"sent_at": datetime.now(UTC).isoformat(), "events": list(events), **reading}
    answer = await scene.world.post("/api/v2/workspaceagents/me/vitals", body, token=scene.token)
    return answer.status_code


async def disconnects(scene: AgentWorld) -> list[dict[str, Any]]:
    answer = await scene.world.get(f"/api/v2/workspaceagents/{scene.agent_id}/disconnects")
    assert answer.status_code == 200, answer.text
    disconnects: list[dict[str, Any]] = answer.json()
    return disconnects


async def _come_and_go(scene: AgentWorld, count: int) -> None:
    async with connected_agent(scene):
        await eventually(lambda: _status(scene, "connected"))

    async def recorded() -> bool:
        return len(await disconnects(scene)) == count

    await eventually(recorded)


async def _status(scene: AgentWorld, status: str) -> bool:
    return bool((await scene.agent())["status"] == status)


async def test_absence_explained_after_return() -> None:
    async with workspace_world() as scene:
        assert await disconnects(scene) == []
        await _come_and_go(scene, 1)
        away = (await disconnects(scene))[0]
        assert (away["cause"], away["ended"], away["told"], away["returned_at"]) == ("unknown", "closed", False, None)
        async with connected_agent(scene):
            await eventually(lambda: _status(scene, "connected"))
            assert await report(scene, event("started", previous="died", same_boot=True, oom_kills=1)) == 204
            back = (await disconnects(scene))[0]
            assert (back["cause"], back["told"]) == ("out_of_memory", True) and back["returned_at"]
            assert back["events"][0]["data"]["oom_kills"] == 1
            assert await report(scene, event("started", previous="died", same_boot=True, oom_kills=1)) == 204
            assert len(await disconnects(scene)) == 1, "repeated, because the answer was lost"
            # a disconnect that only the agent noticed counts as well
            later = event("disconnected", LATER, how="closed")
            assert await report(scene, later, event("connected")) == 204
            cut = (await disconnects(scene))[0]
            assert (cut["cause"], cut["ended"]) == ("proxy_cut", "unnoticed")
            assert await report(scene, event("clock_jumped", seconds=3600)) == 204
            assert len(await disconnects(scene)) == 2, "a clock that jumps is no absence"


async def test_repeated_report_explains_nothing_new() -> None:
    """The connection breaks after the server stored a report, so the agent repeats it."""
    async with workspace_world() as scene:
        await _come_and_go(scene, 1)
        began = event("started", previous="died", same_boot=True)
        async with connected_agent(scene):
            await eventually(lambda: _status(scene, "connected"))
            assert await report(scene, began) == 204
        await eventually(lambda: _status(scene, "disconnected"))
        async with connected_agent(scene):
            await eventually(lambda: _status(scene, "connected"))
            cut = event("disconnected", LATER, how="closed")
            assert await report(scene, began, cut) == 204
            assert [item["cause"] for item in await disconnects(scene)] == ["proxy_cut", "killed"]


@pytest.mark.parametrize(("seconds", "cause"), [(-30, "proxy_cut"), (30, "network_lost")])
@pytest.mark.parametrize("clock_off", [0, 86_400])
async def test_silence_is_proxys_if_agent_was_cut_first(seconds: int, cause: str, clock_off: int) -> None:
    """Otherwise the agent saw only that the server had given up."""
    async with workspace_world() as scene:
        current = await scene.world.ctx.db.read(system_agents.get_current_agent, UUID(str(scene.agent_id)))
        assert current is not None
        now = datetime.now(UTC)
        gave_up, cut = now - timedelta(minutes=5), now - timedelta(minutes=5, seconds=-seconds)
        await scene.world.ctx.db.run(note_disconnect, current, "silent", gave_up)
        off = timedelta(seconds=clock_off)
        assert (
            await report(scene, event("disconnected", cut + off, how="closed"), sent_at=(now + off).isoformat()) == 204
        )
        assert [(item["cause"], item["ended"]) for item in await disconnects(scene)] == [(cause, "silent")]


async def test_each_absence_gets_its_own_cause() -> None:
    """The agent was killed, and is suspended before it could report that."""
    async with workspace_world() as scene:
        current = await scene.world.ctx.db.read(system_agents.get_current_agent, UUID(str(scene.agent_id)))
        assert current is not None
        now = datetime.now(UTC)
        ends: list[tuple[Ended, int]] = [("closed", 10), ("silent", 5)]
        for ended, minutes in ends:
            await scene.world.ctx.db.run(note_disconnect, current, ended, now - timedelta(minutes=minutes))
        times = (now - timedelta(seconds=left) for left in range(60, 0, -1))
        events = (
            event("started", next(times), previous="died", same_boot=True),
            event("connected", next(times)),
            event("stood_still", next(times), seconds=14),
            event("disconnected", next(times), how="closed"),
            event("connected", next(times)),
        )
        assert await report(scene, *events) == 204
        found = await disconnects(scene)
        assert [(item["cause"], item["ended"]) for item in found] == [("slept", "silent"), ("killed", "closed")]
        assert [len(item["events"]) for item in found] == [3, 2]


@pytest.mark.parametrize(
    ("kinds", "absences", "parts"),
    [
        ("started connected", 1, ["started connected"]),
        ("started connected disconnected connected", 1, ["started connected disconnected connected"]),
        ("started connected disconnected connected", 2, ["started connected", "disconnected connected"]),
        ("disconnected dial_failed connected stood_still", 2, ["disconnected dial_failed connected stood_still"]),
        ("disconnected started connected", 3, ["disconnected started connected"]),
        ("connected stood_still disconnected", 2, ["connected stood_still disconnected"]),
        ("disconnected connected " * 3, 2, ["disconnected connected " * 2, "disconnected connected"]),
    ],
)
def test_events_are_split_by_absence(kinds: str, absences: int, parts: list[str]) -> None:
    events = [FlightRecord(at=EARLIER, kind=kind, data={}) for kind in kinds.split()]
    found = split_by_absence(events, absences)
    assert [[event.kind for event in part] for part in found] == [part.split() for part in parts]


async def test_only_newest_presence_ends() -> None:
    """An agent reconnects, to this or another replica, before its end is stored; clocks may differ."""
    async with workspace_world() as scene:
        db, now = scene.world.ctx.db, datetime.now(UTC)
        current = await db.read(system_agents.get_current_agent, UUID(str(scene.agent_id)))
        assert current is not None
        old, new = new_uuid(), new_uuid()
        for stay in (old, new):
            await db.run(connections._mark_connected, now, current, stay, "2.10", now)
        await db.run(connections._mark_disconnected, now, current, old, "silent")
        assert await _status(scene, "connected") and await disconnects(scene) == []
        await db.run(connections._mark_disconnected, now, current, new, "closed")
        assert await _status(scene, "disconnected")
        assert [item["ended"] for item in await disconnects(scene)] == ["closed"]


async def test_clock_set_back_hides_no_absence() -> None:
    """The last sign of life of a presence is in the future, by the database's clock."""
    async with workspace_world() as scene:
        db, now = scene.world.ctx.db, datetime.now(UTC)
        current = await db.read(system_agents.get_current_agent, UUID(str(scene.agent_id)))
        assert current is not None
        stay = new_uuid()
        await db.run(connections._mark_connected, now + timedelta(hours=1), current, stay, "2.10", now)
        await db.run(connections._mark_disconnected, now, current, stay, "silent")
        assert await _status(scene, "disconnected")


async def _mark_connected(tx: Any, agent_id: UUID, then: datetime) -> None:
    await agent_store.update_agent(tx, agent_id, first_connected_at=then, last_connected_at=then, disconnected_at=None)


async def test_connection_lost_with_server() -> None:
    async with workspace_world() as scene:
        then = (datetime.now(UTC) - timedelta(days=1)).replace(microsecond=0)
        await scene.world.ctx.db.run(_mark_connected, scene.agent_id, then)
        async with connected_agent(scene):
            await eventually(lambda: _status(scene, "connected"))
            lost = (await disconnects(scene))[0]
            assert (lost["cause"], lost["ended"]) == ("server_restarted", "lost")
            assert datetime.fromisoformat(lost["disconnected_at"]) == then
            assert await report(scene, event("disconnected", how="closed"), event("connected")) == 204
            assert [item["cause"] for item in await disconnects(scene)] == ["server_restarted"]


async def test_lost_connections_stay_bounded() -> None:
    """Each arrival stores an end of its own; the newest are kept, and all have ended."""
    async with workspace_world() as scene:
        db, began = scene.world.ctx.db, datetime.now(UTC)
        await db.run(_mark_connected, scene.agent_id, began - timedelta(days=1))
        current = await db.read(system_agents.get_current_agent, UUID(str(scene.agent_id)))
        assert current is not None
        now = began
        for _ in range(KEPT + 2):
            now += timedelta(seconds=1)
            await db.run(connections._mark_connected, now, current, new_uuid(), "2.10", began)
        found = await disconnects(scene)
        assert len(found) == KEPT
        assert datetime.fromisoformat(found[0]["returned_at"]) == now
        assert datetime.fromisoformat(found[-1]["returned_at"]) == began + timedelta(seconds=3)


def test_absence_begins_within_last_year() -> None:
    leap_day = datetime(2028, 2, 29, 12, tzinfo=UTC)
    for response, begun in (
        (datetime(1970, 1, 1, tzinfo=UTC), leap_day - timedelta(days=366)),
        (leap_day - timedelta(hours=1), leap_day - timedelta(hours=1)),
        (leap_day + timedelta(days=900), leap_day),
    ):
        assert disconnect_start([FlightRecord(at=response, kind="disconnected", data={})], leap_day) == begun
    assert disconnect_start([], leap_day) == leap_day
