"""An untagged job goes to an untagged daemon of its organization while one is connected."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from sqlalchemy import update

from coder.base.clock import FakeClock
from coder.coderd.store.tables.provisioners import provisioner_daemons
from coder.domain.provisioning.provisioners import STALE_AFTER
from coder.provisionerd.daemon import DRAIN
from coder.rpc.proto import overlay_pb2, provisionerd_pb2
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, new_version
from tests.kit.server.server_in_process import World, running_coderd

TAGS = {"gpu": "yes"}


async def why(world: World, version: Any) -> dict[str, Any]:
    path = f"/api/v2/organizations/{world.organization_id}/provisionerjobs/{version['job']['id']}/why"
    answer: dict[str, Any] = (await world.get(path)).json()
    return answer


def version_of(job: Any) -> str:
    return str(job.template_import.metadata.template_version_id)


@asynccontextmanager
async def waiting(daemon: FakeDaemon) -> AsyncIterator[trio.Event]:
    """A request for work that must not be answered within the block."""
    async with trio.open_nursery() as nursery:
        answered = trio.Event()

        async def acquire() -> None:
            await daemon.acquire()
            answered.set()

        nursery.start_soon(acquire)
        yield answered
        assert not answered.is_set()
        nursery.cancel_scope.cancel()


async def test_busy_untagged_daemon_keeps_jobs() -> None:
    async with (
        running_coderd(first_user=True) as world,
        connected_daemon(world, tags=TAGS, name="special") as special,
        connected_daemon(world, name="plain") as plain,
    ):
        first = await new_version(world)
        running = await plain.acquire()
        assert version_of(running) == first["id"]
        second = await new_version(world)
        async with waiting(special):
            reasons = {one["daemon_name"]: one for one in (await why(world, second))["daemons"]}
            assert (reasons["plain"]["code"], reasons["special"]["code"]) == ("busy", "yields")
            assert reasons["special"]["message"] == (
                "has gpu, and takes jobs without tags only while no untagged provisioner is connected"
            )
            listed = (await world.get("/api/v2/organizations/default/provisionerjobs?status=pending")).json()
            assert len(listed[0]["available_workers"]) == 1
            assert (await world.get(f"/api/v2/templateversions/{second['id']}")).json()["matched_provisioners"][
                "count"
            ] == 1
            await plain.complete_import(running)
            assert version_of(await plain.acquire()) == second["id"]


async def test_tagged_daemon_takes_over() -> None:
    """The end of the last untagged daemon's connection wakes the tagged ones; no poll is due in a test."""
    async with running_coderd(first_user=True) as world, connected_daemon(world, tags=TAGS, name="special") as special:
        jobs: list[Any] = []

        async def acquire() -> None:
            jobs.append(await special.acquire())

        async def is_waiting() -> bool:
            groups = world.ctx.services.api.job_queue._groups.values()
            return any(group.waiting for group in groups if "gpu" in group.offer.tags)

        async with trio.open_nursery() as nursery, connected_daemon(world, name="plain"):
            version = await new_version(world)
            nursery.start_soon(acquire)
            await eventually(is_waiting)
            assert not jobs
        assert version_of(jobs[0]) == version["id"]


async def test_draining_daemon_is_not_connected() -> None:
    async with (
        running_coderd(first_user=True) as world,
        connected_daemon(world, tags=TAGS, name="special") as special,
        connected_daemon(world, name="plain") as plain,
    ):
        await new_version(world)
        running = await plain.acquire()
        version = await new_version(world)
        await plain.session.call(DRAIN, overlay_pb2.DrainRequest(), overlay_pb2.DrainResponse)
        reasons = {one["daemon_name"]: one for one in (await why(world, version))["daemons"]}
        assert (reasons["plain"]["code"], reasons["special"]["code"]) == ("draining", "ready")
        assert version_of(await special.acquire()) == version["id"]
        await plain.complete_import(running)
        async with connected_daemon(world, name="plain"):
            daemons = (await world.get("/api/v2/organizations/default/provisionerdaemons")).json()
            assert {one["name"]: one["provisioners"] for one in daemons}["plain"] == ["echo", "terraform"]


async def test_silent_daemon_is_not_connected() -> None:
    clock = FakeClock()
    async with (
        running_coderd(first_user=True, clock=clock) as world,
        connected_daemon(world, tags=TAGS, name="special") as special,
        connected_daemon(world, name="plain"),
    ):
        version = await new_version(world)

        async def silence(tx: Any) -> None:
            seen = clock.now() - STALE_AFTER
            table = provisioner_daemons
            await tx.execute(update(table).where(table.c.name == "plain").values(last_seen_at=seen))

        await world.ctx.db.run(silence)
        assert version_of(await special.acquire()) == version["id"]


async def test_other_executor_reserves_nothing() -> None:
    async with (
        running_coderd(first_user=True) as world,
        connected_daemon(world, tags=TAGS, name="special") as special,
        connected_daemon(world, name="plain", kinds=("terraform",)),
    ):
        version = await new_version(world, provisioner="echo")
        assert version_of(await special.acquire()) == version["id"]


async def test_other_organization_reserves_nothing() -> None:
    async with running_coderd(first_user=True) as world:
        other = (await world.post("/api/v2/organizations", {"name": "other"})).json()
        async with (
            connected_daemon(world, tags=TAGS, name="special") as special,
            connected_daemon(world, name="plain", organization=other["id"]),
        ):
            version = await new_version(world)
            assert version_of(await special.acquire()) == version["id"]


async def test_strict_rule_reserves_always() -> None:
    async with running_coderd(first_user=True, provisioner_strict_tags=True) as world:
        plain = await new_version(world)
        async with (
            connected_daemon(world, tags=TAGS, name="special") as special,
            special.acquiring() as stream,
        ):
            (reason,) = (await why(world, plain))["daemons"]
            assert reason["code"] == "reserved" and "--provisioner-strict-tags" in reason["message"]
            async with connected_daemon(world, name="plain") as daemon:
                assert version_of(await daemon.acquire()) == plain["id"]
            await stream.send(provisionerd_pb2.CancelAcquire())
            assert (await stream.receive()).job_id == ""
