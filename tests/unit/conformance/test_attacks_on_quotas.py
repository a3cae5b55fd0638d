"""Attacks on quotas: a member tries to run more than the budget, by every way a build can end.

Two workspaces of 10 credits each, with a budget of 10: the second is never granted while the first may still run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from sqlalchemy import text

from coder.base.clock import FakeClock
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.domain.provisioning.provisioners import STALE_AFTER
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, new_template, resource
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import make_ready, prebuilt, settled, world_with_preset

ALLOWED = 10
NONE = pd.FailedJob.WorkspaceBuild()


@dataclass
class Member:
    """The attacker, with a workspace `first` that uses the whole budget."""

    world: World
    daemon: FakeDaemon
    token: str
    template: str
    first: str = ""

    async def new(self, name: str) -> str:
        body = {"template_id": self.template, "name": name}
        created = await self.world.post("/api/v2/users/me/workspaces", body, token=self.token)
        assert created.status_code == 201, created.text
        return str(created.json()["id"])

    async def queue(self, transition: str) -> str:
        path = f"/api/v2/workspaces/{self.first}/builds"
        created = await self.world.post(path, {"transition": transition}, token=self.token)
        assert created.status_code == 201, created.text
        return str(created.json()["id"])

    async def cancel(self, build: str) -> None:
        response = await self.world.patch(f"/api/v2/workspacebuilds/{build}/cancel", token=self.token)
        assert response.status_code == 200, response.text

    async def commit(self, job: Any, cost: int) -> bool:
        request = pd.CommitQuotaRequest(job_id=job.job_id, daily_cost=cost)
        return bool((await self.daemon.call("CommitQuota", request, pd.CommitQuotaResponse)).ok)

    async def begin(self, transition: str, *costs: int) -> Any:
        """Start a build whose daemon has requested the cost."""
        await self.queue(transition)
        job = await self.daemon.acquire()
        for cost in costs:
            await self.commit(job, cost)
        return job

    async def end(self, job: Any) -> None:
        await self.daemon.complete_build(job, state=b"{}", resources=[resource("box")])

    async def fail(self, job: Any) -> None:
        await self.daemon.fail(job, "it broke", workspace_build=NONE)


async def _refused(m: Member) -> None:
    await m.fail(await m.begin("start", 2 * ALLOWED))


async def _refused_twice(m: Member) -> None:
    await _refused(m)
    await _refused(m)


async def _queued(m: Member) -> None:
    await m.queue("start")


async def _runs(m: Member) -> None:
    await m.begin("start")


async def _canceled_in_the_queue(m: Member) -> None:
    await m.cancel(await m.queue("start"))


async def _canceled_stop_in_the_queue(m: Member) -> None:
    await m.cancel(await m.queue("stop"))


async def _failed_before_asking(m: Member) -> None:
    await m.fail(await m.begin("start"))


async def _failed_stop(m: Member) -> None:
    await m.fail(await m.begin("stop"))


async def _failed_delete(m: Member) -> None:
    await m.fail(await m.begin("delete"))


async def _delete_in_the_queue(m: Member) -> None:
    await m.queue("delete")


async def _failed_after_asking_for_less(m: Member) -> None:
    await m.fail(await m.begin("stop", 1))


async def _failed_after_asking_for_less_than_nothing(m: Member) -> None:
    await m.fail(await m.begin("stop", -1000))


async def _succeeded_with_less_than_nothing(m: Member) -> None:
    job = await m.begin("start", -1000)
    await m.end(job)
    await m.fail(await m.begin("start", 1))  # granting it later must not exceed the budget
    await m.end(await m.begin("start", ALLOWED))


async def _requested_twice(m: Member) -> None:
    await m.fail(await m.begin("start", ALLOWED, 0, ALLOWED, 0))


async def _canceled_while_it_stops(m: Member) -> None:
    build = await m.queue("stop")
    job = await m.daemon.acquire()
    await m.commit(job, 1)
    await m.cancel(build)
    await m.daemon.fail(job, "", workspace_build=NONE)


async def _unlimited_meanwhile(m: Member) -> None:
    """Cost granted while there was no limit counts when there is one again."""
    group = f"/api/v2/groups/{m.world.organization_id}"
    await m.world.patch(group, {"quota_allowance": 0})
    job = await m.begin("start", ALLOWED)
    await m.world.patch(group, {"quota_allowance": ALLOWED})
    await m.end(job)


WAYS: tuple[Callable[[Member], Awaitable[None]], ...] = (
    _refused,
    _refused_twice,
    _queued,
    _runs,
    _canceled_in_the_queue,
    _canceled_stop_in_the_queue,
    _failed_before_asking,
    _failed_stop,
    _failed_delete,
    _delete_in_the_queue,
    _failed_after_asking_for_less,
    _failed_after_asking_for_less_than_nothing,
    _succeeded_with_less_than_nothing,
    _requested_twice,
    _canceled_while_it_stops,
    _unlimited_meanwhile,
)


async def _member(world: World, daemon: FakeDaemon) -> Member:
    response = await world.patch(f"/api/v2/groups/{world.organization_id}", {"quota_allowance": ALLOWED})
    assert response.status_code == 200, response.text
    template = await new_template(world, allow_user_cancel_workspace_jobs=True)
    await daemon.complete_import(await daemon.acquire(), start_resources=[resource("box")])
    return Member(world, daemon, "", template["id"])


async def _with_first(m: Member, name: str) -> None:
    _, m.token = await m.world.member(name)
    m.first = await m.new("first")
    job = await m.daemon.acquire()
    assert await m.commit(job, ALLOWED)
    await m.end(job)


async def test_unfinished_builds_count() -> None:
    wrong = []
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        m = await _member(world, daemon)
        for number, way in enumerate(WAYS):
            await _with_first(m, f"member{number}")
            await way(m)
            mine = await m.new("second")
            while (job := await m.daemon.acquire()).workspace_build.metadata.workspace_id != mine:
                pass  # left in the queue: its daemon never returns
            if await m.commit(job, ALLOWED):
                wrong.append(way.__name__)
            await m.fail(job)
    assert not wrong, wrong


async def test_successful_build_lowers_cost() -> None:
    """The second workspace is granted after the first was stopped, deleted, or became cheaper."""
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        m = await _member(world, daemon)
        for number, (transition, costs) in enumerate((("stop", ()), ("stop", (0,)), ("delete", ()), ("start", (0,)))):
            await _with_first(m, f"member{number}")
            await m.end(await m.begin(transition, *costs))
            await m.new("second")
            job = await m.daemon.acquire()
            assert await m.commit(job, ALLOWED), (transition, costs)
            await m.end(job)


# ---- abandoning: it destroys nothing


async def _healthy(m: Member) -> None:
    """The workspace runs, and the daemon could delete it."""


async def _stopped(m: Member) -> None:
    job = await m.begin("stop", ALLOWED)
    await m.end(job)


async def _busy(m: Member) -> None:
    await m.begin("start")


ABANDONING = (
    # way, status for the owner
    (_healthy, 403),
    (_stopped, 403),
    (_queued, 403),
    (_canceled_in_the_queue, 403),
    (_failed_stop, 403),
    (_delete_in_the_queue, 403),
    (_busy, 409),
    (_failed_delete, 200),
)


async def _consumed(m: Member) -> int:
    path = "/api/v2/organizations/default/members/me/workspace-quota"
    return int((await m.world.get(path, token=m.token)).json()["credits_consumed"])


async def test_abandoning_keeps_cost() -> None:
    wrong = []
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        m = await _member(world, daemon)
        _, manager = await world.member("manager", ["template-admin"])
        for number, (way, expected) in enumerate(ABANDONING):
            await _with_first(m, f"member{number}")
            await way(m)
            path = f"/api/v2/workspaces/{m.first}/abandon"
            answer = await world.post(path, token=m.token)
            if answer.status_code != expected:
                wrong.append(f"{way.__name__}: {answer.status_code} {answer.text[:120]}")
            assert await _consumed(m) == ALLOWED, way.__name__
            if not answer.is_success:
                last = (await world.get(f"/api/v2/workspaces/{m.first}")).json()["latest_build"]
                if last["job"]["status"] == "pending":
                    await m.cancel(last["id"])
                continue
            assert (await world.post(path, token=m.token)).status_code == 410
            assert await _consumed(m) == ALLOWED
            confirmed = await world.post(path, token=manager)
            assert (confirmed.status_code, await _consumed(m)) == (200, 0), confirmed.text
            assert (await world.post(path, token=world.token)).status_code == 410
    assert not wrong, "\n".join(wrong)


async def test_manager_abandons_healthy_workspace() -> None:
    """Template managers may orphan a workspace: abandoning is no more than that."""
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        m = await _member(world, daemon)
        await _with_first(m, "member")
        answer = await world.post(f"/api/v2/workspaces/{m.first}/abandon")
        assert (answer.status_code, await _consumed(m)) == (200, 0), answer.text


async def test_owner_abandons_without_daemons() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        async with connected_daemon(world) as daemon:
            m = await _member(world, daemon)
            await _with_first(m, "member")
        clock.advance(STALE_AFTER.total_seconds())
        answer = await world.post(f"/api/v2/workspaces/{m.first}/abandon", token=m.token)
        assert (answer.status_code, await _consumed(m)) == (200, ALLOWED), answer.text


async def test_concurrent_builds_share_budget() -> None:
    async with running_coderd(first_user=True) as world, connected_daemon(world) as daemon:
        m = await _member(world, daemon)
        _, m.token = await world.member("quick")
        for number in range(6):
            await m.new(f"ws{number}")
        jobs = [await daemon.acquire() for _ in range(6)]
        granted: list[bool] = []

        async def ask(job: Any) -> None:
            granted.append(await m.commit(job, 4))

        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(ask, job)
        assert sorted(granted) == [False] * 4 + [True] * 2


@pytest.mark.parametrize("allowed", [ALLOWED, ALLOWED - 1])
async def test_claim_requires_budget(allowed: int) -> None:
    async with world_with_preset() as (world, _, preset):
        await reconcile(world.ctx)
        (ahead,) = await eventually(lambda: prebuilt(world))
        await settled(world, str(ahead))
        await make_ready(world, ahead)
        await _costs(world, str(ahead), ALLOWED)
        await world.patch(f"/api/v2/groups/{world.organization_id}", {"quota_allowance": allowed})
        _, claimer = await world.member("claimer")
        body = {"template_id": world.extra["template"]["id"], "name": "mine", "template_version_preset_id": preset}
        created = await world.post("/api/v2/users/me/workspaces", body, token=claimer)
        assert (created.json()["id"] == str(ahead)) is (allowed == ALLOWED), created.text
        await settled(world, created.json()["id"])


async def _costs(world: World, workspace_id: str, cost: int) -> None:
    statement = text("UPDATE workspace_builds SET daily_cost = :cost, granted_cost = :cost WHERE workspace_id = :id")

    async def write(tx: Any) -> None:
        await tx.execute(statement, {"cost": cost, "id": workspace_id})

    await world.ctx.db.run(write)
