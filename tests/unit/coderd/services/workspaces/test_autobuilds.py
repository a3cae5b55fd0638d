"""Automatic autostart, autostop, dormancy and deletion, with a fake clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio
from sqlalchemy import event, update

from coder.base.clock import FakeClock
from coder.coderd.services.workspaces import autobuilds
from coder.coderd.services.workspaces.autobuilds import take_due_steps
from coder.coderd.services.workspaces.autostop_reminders import remind
from coder.coderd.store.tables.templates import templates
from coder.coderd.store.workspaces import autobuilds as autobuild_store
from coder.coderd.store.workspaces import system_workspaces
from coder.domain.workspaces.workspaces import MAX_TTL_MS
from coder.rpc.proto import agent_pb2
from tests.kit.agents.scripted_agent import connected_agent
from tests.kit.agents.scripted_agent import workspace_world as agent_world
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import build, create, new_workspace, settled, workspace_world

TUESDAY = datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOUR_MS = 3_600_000


async def change_template(world: World, **body: Any) -> Any:
    answer = await world.patch(f"/api/v2/templates/{world.extra['template']['id']}", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def taken_reasons(world: World) -> list[str]:
    return [taken.step.reason for taken in await take_due_steps(world.ctx)]


async def test_day_of_a_workspace() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        schedule = "CRON_TZ=Europe/Berlin 30 9 * * 1-5"
        workspace = await new_workspace(world, ttl_ms=2 * HOUR_MS, autostart_schedule=schedule)
        deadline = datetime.fromisoformat(workspace["latest_build"]["deadline"])
        assert deadline == TUESDAY + 2 * HOUR
        clock.advance(
            (2 * HOUR - timedelta(seconds=29)).total_seconds()
        )  # 10:00:01: the turn's minute is 10:00:00, before the deadline
        assert await taken_reasons(world) == []
        clock.advance((timedelta(minutes=1)).total_seconds())
        assert await taken_reasons(world) == ["autostop"]
        assert await taken_reasons(world) == [], "a build is active"
        stopped = await settled(world, workspace["id"])
        assert (stopped["latest_build"]["transition"], stopped["latest_build"]["reason"]) == ("stop", "autostop")
        assert stopped["latest_build"]["initiator_name"] == "admin"
        assert stopped["next_start_at"] == "2026-01-07T08:30:00Z"
        clock.advance((22 * HOUR + timedelta(minutes=29)).total_seconds())  # 08:30:01 the next morning
        assert await taken_reasons(world) == ["autostart"]
        started = await settled(world, workspace["id"])
        assert (started["latest_build"]["transition"], started["latest_build"]["reason"]) == ("start", "autostart")


async def test_failing_workspace_does_not_block_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        created = [await new_workspace(world, name, ttl_ms=HOUR_MS) for name in ("one", "two")]
        clock.advance((HOUR + timedelta(minutes=1)).total_seconds())
        due = [workspace_id for workspace_id, _ in await world.ctx.db.read(autobuild_store.list_due, clock.now())]
        assert sorted(map(str, due)) == sorted(item["id"] for item in created)
        original = autobuilds._take_step

        async def take(tx: Any, workspace_id: Any, *rest: Any) -> Any:
            if workspace_id == due[0]:
                raise ValueError("an unexpected row")
            return await original(tx, workspace_id, *rest)

        monkeypatch.setattr(autobuilds, "_take_step", take)
        assert [taken.workspace_id for taken in await take_due_steps(world.ctx)] == [due[1]]


async def test_workspace_without_step_has_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        workspace = await new_workspace(world, ttl_ms=HOUR_MS, autostart_schedule="CRON_TZ=UTC 30 9 * * 1-5")
        clock.advance((HOUR + timedelta(minutes=1)).total_seconds())
        assert await taken_reasons(world) == ["autostop"]
        await settled(world, workspace["id"])
        candidates = await world.ctx.db.read(autobuild_store.list_due, clock.now())
        assert [str(workspace_id) for workspace_id, _ in candidates] == [workspace["id"]], "it has a schedule"
        tried = []
        original = autobuilds._take_step

        async def take(tx: Any, workspace_id: Any, *rest: Any) -> Any:
            tried.append(str(workspace_id))
            return await original(tx, workspace_id, *rest)

        monkeypatch.setattr(autobuilds, "_take_step", take)
        assert await taken_reasons(world) == []
        assert tried == []
        clock.advance((24 * HOUR).total_seconds())
        assert await taken_reasons(world) == ["autostart"]
        assert set(tried) == {workspace["id"]}


async def test_two_replicas_take_step_once() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        await new_workspace(world, ttl_ms=HOUR_MS)
        clock.advance((2 * HOUR).total_seconds())
        steps: list[str] = []

        async def replica() -> None:
            steps.extend(await taken_reasons(world))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(replica)
        assert steps == ["autostop"]


async def test_dormancy_deletion_and_activation() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        changed = await change_template(
            world, time_til_dormant_ms=24 * HOUR_MS, time_til_dormant_autodelete_ms=48 * HOUR_MS
        )
        assert (changed["time_til_dormant_ms"], changed["time_til_dormant_autodelete_ms"]) == (
            24 * HOUR_MS,
            48 * HOUR_MS,
        )
        workspace = await new_workspace(world)
        path = f"/api/v2/workspaces/{workspace['id']}"
        clock.advance((25 * HOUR).total_seconds())
        assert await taken_reasons(world) == ["dormancy"]
        dormant = await settled(world, workspace["id"])
        assert dormant["latest_build"]["reason"] == "dormancy"
        assert dormant["dormant_at"] and dormant["deleting_at"] == "2026-01-09T09:00:30Z"
        # a shorter deletion delay counts from the start of dormancy
        await change_template(world, time_til_dormant_autodelete_ms=24 * HOUR_MS)
        assert (await world.get(path)).json()["deleting_at"] == "2026-01-08T09:00:30Z"
        assert (await world.put(f"{path}/dormant", {"dormant": False})).status_code == 200
        assert (await world.get(path)).json()["deleting_at"] is None
        clock.advance((25 * HOUR).total_seconds())
        assert await taken_reasons(world) == ["dormancy"], "dormant again; it is stopped already"
        clock.advance((25 * HOUR).total_seconds())
        assert await taken_reasons(world) == ["autodelete"]
        deleted = await settled(world, workspace["id"])
        assert deleted["latest_build"]["status"] == "deleted"


async def test_failed_start_is_stopped_later() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, answers):
        await change_template(world, failure_ttl_ms=HOUR_MS)
        workspace = await new_workspace(world)
        await build(world, workspace["id"], "stop")
        working = answers.build
        answers.build = lambda job: {"error": "no"}
        await build(world, workspace["id"], "start")
        answers.build = working
        clock.advance((HOUR).total_seconds())
        assert await taken_reasons(world) == []
        clock.advance((timedelta(minutes=1)).total_seconds())
        assert await taken_reasons(world) == ["autostop"]


async def test_quiet_hours_and_required_stop() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        path = "/api/v2/users/me/quiet-hours"
        assert (await world.get(path)).json() == {
            "raw_schedule": "CRON_TZ=UTC 0 0 * * *",
            "user_set": False,
            "user_can_set": True,
            "time": "00:00",
            "timezone": "UTC",
            "next": "2026-01-07T00:00:00Z",
        }
        response = await world.put(path, {"schedule": "CRON_TZ=Asia/Kolkata 30 3 * * *"})
        assert (response.status_code, response.json()["next"]) == (200, "2026-01-06T22:00:00Z")
        assert (await world.put(path, {"schedule": "CRON_TZ=UTC 0 0 * * 1"})).status_code == 400
        template = await change_template(world, autostop_requirement={"days_of_week": ["wednesday"], "weeks": 1})
        assert template["autostop_requirement"] == {"days_of_week": ["wednesday"], "weeks": 1}
        workspace = await new_workspace(world, ttl_ms=72 * HOUR_MS)
        latest = workspace["latest_build"]
        assert latest["deadline"] == latest["max_deadline"] == "2026-01-06T22:00:00Z"
        late = await world.put(f"/api/v2/workspaces/{workspace['id']}/extend", {"deadline": "2026-01-06T23:00:00Z"})
        assert late.status_code == 400
        # clearing the user's own time to live leaves the template's limit in place
        assert (await world.put(f"/api/v2/workspaces/{workspace['id']}/ttl", {"ttl_ms": None})).status_code == 204
        latest = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]
        assert latest["deadline"] == latest["max_deadline"] == "2026-01-06T22:00:00Z"
        # removing the requirement removes the latest stop of running workspaces
        await change_template(world, autostop_requirement={"days_of_week": [], "weeks": 1})
        latest = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]
        assert latest.get("max_deadline") is None


async def latest_builds(world: World, workspaces: Sequence[dict[str, Any]]) -> list[tuple[Any, Any]]:
    builds = [(await world.get(f"/api/v2/workspaces/{item['id']}")).json()["latest_build"] for item in workspaces]
    return [(build.get("deadline"), build.get("max_deadline")) for build in builds]


@contextmanager
def statements(world: World, beginning: str) -> Iterator[list[str]]:
    """Record the database statements inside the block that start with `beginning`."""
    recorded: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.startswith(beginning):
            recorded.append(statement)

    engine = world.ctx.db.engine.sync_engine
    event.listen(engine, "before_cursor_execute", record)
    try:
        yield recorded
    finally:
        event.remove(engine, "before_cursor_execute", record)


async def test_stop_requirement_updates_all_in_one_statement() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        _, token = await world.member()
        response = await world.put(
            "/api/v2/users/me/quiet-hours", {"schedule": "CRON_TZ=Asia/Kolkata 30 3 * * *"}, token=token
        )
        assert response.status_code == 200
        late = await new_workspace(world, "late", ttl_ms=72 * HOUR_MS)
        soon = await new_workspace(world, "soon", ttl_ms=HOUR_MS)
        endless = await new_workspace(world, "endless")
        created = await create(world, "theirs", token=token)
        theirs = await settled(world, created.json()["id"])
        workspaces = [late, soon, endless, theirs]
        before = await latest_builds(world, workspaces)
        with statements(world, "UPDATE workspace_builds") as recorded:
            await change_template(world, autostop_requirement={"days_of_week": ["wednesday"], "weeks": 1})
        assert len(recorded) == 1
        midnight, kolkata = "2026-01-07T00:00:00Z", "2026-01-06T22:00:00Z"
        after = await latest_builds(world, workspaces)
        assert after == [(midnight, midnight), (before[1][0], midnight), (midnight, midnight), (kolkata, kolkata)]
        await change_template(world, autostop_requirement={"days_of_week": [], "weeks": 1})
        assert await latest_builds(world, workspaces) == [(deadline, None) for deadline, _ in after]


async def test_autostart_days_update_all_in_one_statement() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        nine = await new_workspace(world, "nine", autostart_schedule="CRON_TZ=UTC 0 9 * * *")
        ten = await new_workspace(world, "ten", autostart_schedule="CRON_TZ=UTC 0 10 * * *")
        never = await new_workspace(world, "never")
        with statements(world, "UPDATE workspaces SET next_start_at") as recorded:
            await change_template(world, autostart_requirement={"days_of_week": ["friday"]})
        assert len(recorded) == 1
        workspaces = [(await world.get(f"/api/v2/workspaces/{item['id']}")).json() for item in (nine, ten, never)]
        assert [item["next_start_at"] for item in workspaces] == ["2026-01-09T09:00:00Z", "2026-01-09T10:00:00Z", None]


async def test_quiet_hours_permissions_and_fixed_schedule() -> None:
    from tests.kit.server.server_in_process import running_coderd

    async with running_coderd(first_user=True, allow_custom_quiet_hours=False) as world:
        _, token = await world.member()
        assert (await world.get(f"/api/v2/users/{world.user_id}/quiet-hours", token=token)).status_code == 404
        answer = await world.put("/api/v2/users/me/quiet-hours", {"schedule": "CRON_TZ=UTC 0 1 * * *"}, token=token)
        assert answer.status_code == 403


async def test_suspended_owner_stopped_and_not_started() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        user_id, token = await world.member()
        created = await create(world, "theirs", token=token, autostart_schedule="CRON_TZ=UTC 0 9 * * *")
        assert created.status_code == 201
        workspace = await settled(world, created.json()["id"])
        assert (await world.put(f"/api/v2/users/{user_id}/status/suspend")).status_code == 200
        assert await taken_reasons(world) == ["autostop"]
        await settled(world, workspace["id"])
        clock.advance((25 * HOUR).total_seconds())
        assert await taken_reasons(world) == []


@pytest.mark.parametrize("updates", ["always", "never"])
async def test_automatic_updates(updates: str) -> None:
    from tests.kit.provisioners.scripted_provisioner import ended, new_version

    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        template = world.extra["template"]
        workspace = await new_workspace(world, autostart_schedule="CRON_TZ=UTC 0 9 * * *", automatic_updates=updates)
        await build(world, workspace["id"], "stop")
        version = await new_version(world, template_id=template["id"])
        await ended(world, f"/api/v2/templateversions/{version['id']}")
        promoted = await world.patch(f"/api/v2/templates/{template['id']}/versions", {"id": version["id"]})
        assert promoted.status_code == 200
        clock.advance((2 * HOUR).total_seconds())
        assert await taken_reasons(world) == ["autostart"]
        started = await settled(world, workspace["id"])
        expected = version["id"] if updates == "always" else template["active_version_id"]
        assert started["latest_build"]["template_version_id"] == expected


async def test_activity_extends_deadline() -> None:
    clock = FakeClock(TUESDAY)
    async with agent_world(clock=clock) as view_context:
        world, path = view_context.world, f"/api/v2/workspaces/{view_context.workspace['id']}"
        template = f"/api/v2/templates/{view_context.workspace['template_id']}"
        assert (await world.patch(template, {"activity_bump_ms": HOUR_MS})).status_code == 200
        now = clock.now()
        row = await world.ctx.db.read(system_workspaces.get_view, _uuid(view_context.workspace["id"]))
        assert row is not None
        from coder.coderd.store.workspaces import builds as build_store

        await world.ctx.db.run(build_store.update_build, row.latest.build.id, deadline=now + timedelta(minutes=35))
        async with connected_agent(view_context) as agent:
            clock.advance((timedelta(seconds=30)).total_seconds())
            stats = agent_pb2.UpdateStatsRequest(stats=agent_pb2.Stats(connection_count=1, session_count_ssh=1))
            await agent.call("UpdateStats", stats, agent_pb2.UpdateStatsResponse)
        await world.ctx.services.last_use.flush()
        workspace = (await world.get(path)).json()
        assert datetime.fromisoformat(workspace["latest_build"]["deadline"]) == clock.now() + HOUR
        assert datetime.fromisoformat(workspace["last_used_at"]) == clock.now()


def _uuid(text: str) -> Any:
    from uuid import UUID

    return UUID(text)


_TIMES = (
    "time_til_dormant_ms",
    "time_til_dormant_autodelete_ms",
    "failure_ttl_ms",
    "default_ttl_ms",
    "activity_bump_ms",
    "time_til_autostop_notify_ms",
)


async def test_endless_template_times_are_refused() -> None:
    async with workspace_world() as (world, _):
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        for name in _TIMES:
            for value in (MAX_TTL_MS + 1, (1 << 63) - 1):
                answer = await world.patch(template, {name: value})
                assert answer.status_code == 400, (name, value, answer.text)
                assert answer.json()["validations"][0]["field"] == name
            assert (await world.patch(template, {name: MAX_TTL_MS})).status_code == 200, name


async def test_endless_times_of_one_template_stop_no_other() -> None:
    """A row of an earlier release: PostgreSQL refused the list of all due workspaces because of its interval."""
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        await new_workspace(world, ttl_ms=HOUR_MS)

        async def write(tx: Any) -> None:
            names = ("time_til_dormant_ms", "time_til_dormant_autodelete_ms", "failure_ttl_ms")
            endless = dict.fromkeys((*names, "time_til_autostop_notify_ms"), (1 << 63) - 1)
            await tx.execute(update(templates).values(**endless))

        await world.ctx.db.run(write)
        clock.advance((HOUR + timedelta(minutes=1)).total_seconds())
        assert await taken_reasons(world) == ["autostop"]
        assert await remind(world.ctx) == 0
