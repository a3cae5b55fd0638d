"""Jobs without a living daemon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from coder.base.clock import FakeClock
from coder.coderd.services.provisioning import job_endings, reaping
from coder.coderd.services.provisioning.reaping import reap
from coder.coderd.store.engine.availability import Availability
from coder.coderd.store.provisioning.jobs import JobRow
from coder.coderd.store.workspaces import system_builds
from coder.rpc.errors import RpcError
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.provisioners.scripted_provisioner import connected_daemon, ended, new_template, new_version
from tests.kit.server.server_in_process import running_coderd

DAEMONS = "/api/v2/organizations/default/provisionerdaemons?offline=true"


async def test_hung_and_pending_jobs_are_reaped() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        hung = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            waiting = await new_version(world)
            clock.advance(timedelta(minutes=4, seconds=59).total_seconds())
            assert await reap(world.ctx) == []
            await daemon.update(job)
            clock.advance(timedelta(minutes=4, seconds=59).total_seconds())
            assert await reap(world.ctx) == []
            clock.advance(2)
            assert [str(item.id) for item in await reap(world.ctx)] == [hung["job"]["id"]]
            with pytest.raises(RpcError, match="job already completed"):
                await daemon.update(job)
        result = (await world.get(f"/api/v2/templateversions/{hung['id']}")).json()["job"]
        assert result["status"] == "failed"
        assert result["error"].startswith("Coder: Build has been detected as hung for 5 minutes")
        logs = (await world.get(f"/api/v2/templateversions/{hung['id']}/logs")).json()
        assert [entry["log_level"] for entry in logs] == ["error"] * 5
        clock.advance(timedelta(minutes=25).total_seconds())
        assert [str(item.id) for item in await reap(world.ctx)] == [waiting["job"]["id"]]
        result = (await world.get(f"/api/v2/templateversions/{waiting['id']}")).json()["job"]
        assert "pending for 30 minutes" in result["error"]
        assert result["started_at"] == result["completed_at"]


STEP = 60.0
"""Seconds between two looks."""


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        pytest.param([], False, id="the server has just started"),
        pytest.param([("pass", STEP)], True, id="nothing happened"),
        pytest.param([("pass", STEP + 5)], True, id="a busy machine"),
        pytest.param([("pass", 400)], False, id="the server was stopped"),
        pytest.param([("pass", STEP), ("pass", STEP)], False, id="a look failed"),
        pytest.param([("set", 600), ("pass", STEP)], False, id="the database's clock was set forward"),
        pytest.param([("set", -600), ("pass", STEP)], False, id="the database's clock was set back"),
        pytest.param([("pass", STEP - 10), ("fail", 0), ("pass", 10)], False, id="the database failed just now"),
        pytest.param([("fail", 0), ("pass", STEP)], True, id="the database failed earlier"),
    ],
)
def test_silence_counts_only_while_listening(steps: list[tuple[str, float]], counts: bool) -> None:
    wall, elapsed = FakeClock(), FakeClock()
    availability = Availability(elapsed.monotonic)
    context: Any = SimpleNamespace(clock=wall, db=SimpleNamespace(availability=availability))
    attention = reaping.Attention(context)
    if steps:
        assert not attention.look()
        attention.expect(STEP)
    for what, seconds in steps:
        if what == "fail":
            availability.failed(OSError())
            continue
        wall.advance(seconds)
        if what == "pass":
            elapsed.advance(seconds)
    assert attention.look() is counts


def looks(attention: reaping.Attention, wall: FakeClock, seconds: float, count: int = 1) -> timedelta:
    """Look so often, each time after so many seconds instead of STEP; return what is excused at the end."""
    for _ in range(count):
        attention.expect(STEP)
        wall.advance(seconds)
        attention.look()
    return attention.excused()


def test_missed_time_is_excused() -> None:
    """A daemon that is cut off for a minute when the clock is set, or after an outage, is silent for this minute."""
    wall, elapsed = FakeClock(), FakeClock()
    availability = Availability(elapsed.monotonic)
    context: Any = SimpleNamespace(clock=wall, db=SimpleNamespace(availability=availability))
    attention = reaping.Attention(context)
    assert not attention.look()
    assert attention.excused() >= timedelta(hours=1), "no server may have run before"
    assert looks(attention, wall, STEP, 4) >= timedelta(hours=1)
    assert looks(attention, wall, STEP) == timedelta()
    assert looks(attention, wall, STEP + 600) == timedelta(seconds=STEP + 600)
    assert looks(attention, wall, STEP, 20) == timedelta()
    assert looks(attention, wall, STEP - 600) == timedelta(), "a silence is not longer by that"
    availability.failed(OSError())
    assert looks(attention, wall, STEP, 2) == timedelta(seconds=2 * STEP)
    elapsed.advance(2 * reaping.LISTENING)
    assert looks(attention, wall, STEP, 4) == timedelta(seconds=2 * STEP)
    assert looks(attention, wall, STEP, 2) == timedelta()


async def test_job_survives_stop_of_server() -> None:
    """Its daemon reports again before the reaper judges: a stop of ten minutes is no silence of the daemon."""
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            attention = reaping.Attention(world.ctx)
            attention.look()
            attention.expect(STEP)
            clock.advance(timedelta(minutes=10).total_seconds())
            assert not attention.look()
            attention.expect(reaping.LISTENING)
            await daemon.update(job)
            clock.advance(reaping.LISTENING)
            assert attention.look()
            assert await reap(world.ctx) == []
            await daemon.complete_import(job)
        assert (await ended(world, f"/api/v2/templateversions/{version['id']}"))["job"]["status"] == "succeeded"


async def test_late_state_of_hung_build_is_kept() -> None:
    """A daemon that stood still reports what its Terraform created meanwhile; a newer build goes before."""
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        template = await new_template(world)
        async with connected_daemon(world) as daemon:
            await daemon.complete_import(await daemon.acquire())
            await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
            made = await world.post("/api/v2/users/me/workspaces", {"template_id": template["id"], "name": "dev"})
            workspace = made.json()

            async def report_late(job: Any, state: bytes) -> None:
                with pytest.raises(RpcError, match="job already completed"):
                    await daemon.fail(job, "late", workspace_build=pd.FailedJob.WorkspaceBuild(state=state))

            async def state_of(build: str) -> bytes:
                return await world.ctx.db.read(system_builds.get_state, UUID(build))

            first = await daemon.acquire()
            clock.advance(timedelta(minutes=5).total_seconds())
            assert len(await reap(world.ctx)) == 1
            await report_late(first, b'{"late": 1}')
            assert await state_of(workspace["latest_build"]["id"]) == b'{"late": 1}'
            path = f"/api/v2/workspaces/{workspace['id']}/builds"
            newer = (await world.post(path, {"transition": "stop"})).json()
            await report_late(first, b'{"late": 2}')
            assert await state_of(workspace["latest_build"]["id"]) == b'{"late": 1}'
            second = await daemon.acquire()
            assert second.workspace_build.state == b'{"late": 1}'
            await daemon.complete_build(second, state=b"{}")
            await report_late(second, b'{"late": 3}')
            assert await state_of(newer["id"]) == b"{}"


async def test_unreapable_job_blocks_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        stuck = (await new_version(world))["job"]["id"]
        clock.advance(1)
        behind = (await new_version(world))["job"]["id"]
        clock.advance(timedelta(minutes=31).total_seconds())
        really = job_endings.end_with_error

        async def end(tx: Any, job: JobRow, *rest: Any) -> Any:
            if str(job.id) == stuck:
                raise ValueError("an unexpected row")
            return await really(tx, job, *rest)

        monkeypatch.setattr(reaping, "end_with_error", end)
        assert [str(item.id) for item in await reap(world.ctx)] == [behind]


async def test_stale_daemons_are_deleted() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        async with connected_daemon(world):
            assert [item["status"] for item in (await world.get(DAEMONS)).json()] == ["idle"]
        clock.advance(91)
        assert [item["status"] for item in (await world.get(DAEMONS)).json()] == ["offline"]
        assert (await world.get("/api/v2/organizations/default/provisionerdaemons")).json() == []
        clock.advance(timedelta(hours=12).total_seconds())
        await reap(world.ctx)
        assert len((await world.get(DAEMONS)).json()) == 1
