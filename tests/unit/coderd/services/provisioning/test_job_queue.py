"""The dispatcher: the database assigns jobs by the rules, and no job is lost."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import trio
import trio.testing
from sqlalchemy import select

from coder.base.clock import FakeClock
from coder.base.secret import Secret
from coder.coderd.app import open_server
from coder.coderd.config.settings import ServerConfig
from coder.coderd.services.provisioning.connected_daemon import Worker
from coder.coderd.services.provisioning.job_endings import end_lost_jobs
from coder.coderd.services.provisioning.job_queue import take_job
from coder.coderd.services.provisioning.jobs import requirements_of
from coder.coderd.services.provisioning.new_jobs import NewJob, enqueue_job
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.domain.provisioning.jobs import LOST_ERROR
from coder.domain.provisioning.queue import DaemonOffer, TagRule, pick
from coder.domain.provisioning.tags import UNTAGGED, normalize_tags
from tests.kit.api.http_clients import http_client
from tests.kit.provisioners.scripted_provisioner import connected_daemon, new_version, upload
from tests.kit.server.postgres_server import fresh_database
from tests.kit.server.server_in_process import World, running_coderd

NOW = datetime.now(UTC)
"The servers here go by the system's clock, and their reaper ends what has waited for half an hour."


async def post(world: World, file_id: str, *, priority: int = 0, at: datetime = NOW, **fields: Any) -> Any:
    new = NewJob(
        organization_id=UUID(world.organization_id),
        initiator_id=UUID(world.user_id),
        provisioner=fields.get("provisioner", "echo"),
        file_id=UUID(file_id),
        type="template_version_import",
        input={"template_version_id": str(uuid4())},
        tags=normalize_tags("", fields.get("tags")),
        priority=priority,
    )
    return await world.ctx.db.run(enqueue_job, new, at)


async def test_dispatcher_agrees_with_rules() -> None:
    chance = random.Random(7)
    async with running_coderd(first_user=True) as world:
        file_id = await upload(world, {"main.tf": ""})
        organization = UUID(world.organization_id)

        def random_tags() -> dict[str, str]:
            return {key: chance.choice("12") for key in chance.sample("ab", chance.randint(0, 2))}

        waiting = [
            await post(
                world,
                file_id,
                priority=chance.randint(0, 1),
                at=NOW + timedelta(seconds=chance.randint(0, 5)),
                provisioner=chance.choice(["echo", "terraform"]),
                tags=random_tags(),
            )
            for _ in range(25)
        ]
        queued = [requirements_of(job) for job in waiting]
        misses = 0
        while misses < 40:
            kinds = frozenset(chance.sample(["echo", "terraform"], chance.randint(1, 2)))
            offer = DaemonOffer(organization, kinds, normalize_tags("", random_tags()))
            strict = chance.random() < 0.5
            expected = pick(queued, offer, rule=TagRule(strict))
            got = await world.ctx.db.run(take_job, offer, uuid4(), NOW, strict)
            assert (got.id if got else None) == (expected.job_id if expected else None)
            if expected is None:
                misses += 1
            else:
                queued.remove(expected)
        elsewhere = DaemonOffer(uuid4(), frozenset({"echo", "terraform"}), dict(UNTAGGED))
        assert await world.ctx.db.run(take_job, elsewhere, uuid4(), NOW, False) is None


async def test_sql_status_matches() -> None:
    async with running_coderd(first_user=True) as world:
        file_id = await upload(world, {"main.tf": ""})
        times = (None, NOW)
        for started in times:
            for completed in times:
                for canceled in times:
                    for error in ("", "boom"):
                        job = await post(world, file_id)
                        await world.ctx.db.run(
                            _set,
                            job.id,
                            {"started_at": started, "completed_at": completed, "canceled_at": canceled, "error": error},
                        )

        async def read(tx: Any) -> list[tuple[UUID, str]]:
            return [(row[0], row[1]) for row in await tx.execute(select(provisioner_jobs.c.id, job_store.STATUS))]

        stored = dict(await world.ctx.db.read(read))
        rows = await world.ctx.db.read(system_jobs.get_jobs, list(stored))
        assert len(rows) == 16
        assert {key: row.status for key, row in rows.items()} == stored


async def _set(tx: Any, job_id: UUID, values: dict[str, Any]) -> None:
    await job_store.update_job(tx, job_id, **values)


async def test_canceled_acquire_loses_no_job() -> None:
    async with running_coderd(first_user=True) as world:
        file_id = await upload(world, {"main.tf": ""})
        queue = world.ctx.services.api.job_queue
        offer = DaemonOffer(UUID(world.organization_id), frozenset({"echo"}), dict(UNTAGGED))
        for _ in range(5):
            with trio.CancelScope() as scope:
                scope.cancel()
                await queue.acquire(uuid4(), offer)
        first, second = await post(world, file_id), await post(world, file_id, at=NOW + timedelta(seconds=1))
        assert (await queue.acquire(uuid4(), offer)).id == first.id
        got: list[UUID] = []
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                got.append((await queue.acquire(uuid4(), offer)).id)

            nursery.start_soon(wait)
            nursery.start_soon(wait)
            third = await post(world, file_id, at=NOW + timedelta(seconds=2))
        assert sorted(got) == sorted([second.id, third.id])


async def test_forgotten_jobs_fail() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        version = await new_version(world)
        async with connected_daemon(world, name="reborn") as daemon:
            await daemon.acquire()
            (row,) = (await world.get("/api/v2/organizations/default/provisionerdaemons")).json()
        offer = DaemonOffer(UUID(world.organization_id), frozenset({"echo"}), row["tags"])
        worker = Worker(UUID(row["id"]), "reborn", offer)
        path = f"/api/v2/templateversions/{version['id']}"
        clock.advance(19)
        await end_lost_jobs(world.ctx, worker)
        assert (await world.get(path)).json()["job"]["status"] == "running"
        clock.advance(1)
        await end_lost_jobs(world.ctx, worker)
        job = (await world.get(path)).json()["job"]
        assert (job["status"], job["error"]) == ("failed", LOST_ERROR)


async def test_running_job_survives_restart() -> None:
    async with fresh_database() as url:
        config = ServerConfig(
            http_address="127.0.0.1:0",
            postgres_url=Secret(url),
            provisioner_daemons=0,
            derp_server_stun_addresses=("disable",),
        )
        async with open_server(config) as server, http_client(server.url) as client:
            world = World(server, client)
            token = await world.first_user()
            organization = world.organization_id
            version = await new_version(world)
            async with connected_daemon(world, name="outside") as daemon:
                job = await daemon.acquire()
        async with open_server(config) as server, http_client(server.url) as client:
            world = World(server, client, token, organization_id=organization)
            async with connected_daemon(world, name="outside") as daemon:
                await daemon.update(job)
                await daemon.complete_import(job)
            current = (await world.get(f"/api/v2/templateversions/{version['id']}")).json()
            assert current["job"]["status"] == "succeeded"
