"""The rules of jobs exist twice, as pure functions and as SQL; random jobs and daemons must give equal results."""

from __future__ import annotations

import io
import random
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import pytest
from sqlalchemy import delete, select, update

from coder.base.clock import FakeClock
from coder.base.ids import new_uuid
from coder.coderd.services.provisioning.queue_daemons import load_daemons
from coder.coderd.services.provisioning.tag_rules import load_tag_rule
from coder.coderd.store.engine.database import Tx
from coder.coderd.store.provisioning.jobs import STATUS, JobRow, acquire_job, insert_job, list_waiting
from coder.coderd.store.provisioning.provisioners import DaemonRow, upsert_daemon
from coder.coderd.store.tables.jobs import provisioner_jobs
from coder.coderd.store.tables.provisioners import provisioner_daemons
from coder.coderd.store.templates import files
from coder.coderd.store.templates.files import FileRow
from coder.domain.provisioning.jobs import derive_status
from coder.domain.provisioning.provisioners import RESERVED_KEYS, STALE_AFTER
from coder.domain.provisioning.queue import MAX_PREVIEWS, PREVIEW_PRIORITY, DaemonOffer, TagRule, pick
from coder.domain.provisioning.queue_reasons import tag_rule
from coder.domain.provisioning.tags import UNTAGGED, normalize_tags
from tests.kit.server.server_in_process import World, running_coderd

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWNERS = ("", "ada", "bob")


class UndoneError(Exception):
    pass


def some_tags(choose: random.Random) -> dict[str, str]:
    tags = {key: choose.choice(["a", "b"]) for key in ("place", "gpu") if choose.random() < 0.4}
    scope = {"scope": "user"} if choose.random() < 0.3 else {}
    return normalize_tags(choose.choice(OWNERS[1:]), tags, scope)


async def new_job(world: World, choose: random.Random, file_id: UUID) -> JobRow:
    job = JobRow(
        id=new_uuid(),
        created_at=NOW + timedelta(seconds=choose.randrange(5)),
        updated_at=NOW,
        started_at=choose.choice([None, None, NOW]),
        completed_at=choose.choice([None, None, None, NOW]),
        canceled_at=choose.choice([None, None, None, NOW]),
        error=choose.choice(["", "", "", "broken"]),
        error_code="",
        organization_id=UUID(world.organization_id),
        initiator_id=UUID(world.user_id),
        provisioner=choose.choice(["terraform", "echo"]),
        file_id=file_id,
        type="template_version_import",
        input={"template_version_id": str(new_uuid())},
        worker_id=None,
        tags=some_tags(choose),
        priority=choose.choice([0, 0, 1]),
        logs_length=0,
        logs_overflowed=False,
    )
    await world.ctx.db.run(insert_job, job)
    return job


async def mark_previews(tx: Tx, choose: random.Random, running: int) -> None:
    """Make pending jobs previews, and have `running` others run."""
    jobs = provisioner_jobs.c
    is_open = (jobs.completed_at.is_(None), jobs.canceled_at.is_(None))
    pending = list((await tx.execute(select(jobs.id).where(*is_open, jobs.started_at.is_(None)))).scalars())
    started = list((await tx.execute(select(jobs.id).where(*is_open, jobs.started_at.is_not(None)))).scalars())
    chosen = [*choose.sample(pending, len(pending) * 2 // 3), *started[:running]]
    await tx.execute(update(provisioner_jobs).where(jobs.id.in_(chosen)).values(priority=PREVIEW_PRIORITY))


async def random_queue(world: World, choose: random.Random) -> list[JobRow]:
    file = FileRow(new_uuid(), "0" * 64, UUID(world.user_id), NOW, "application/x-tar", b"")
    await world.ctx.db.run(files.keep_file, file, io.BytesIO())
    return [await new_job(world, choose, file.id) for _ in range(60)]


async def acquired(world: World, offer: DaemonOffer, *, strict: bool) -> UUID | None:
    """Return the job the dispatcher would assign; the transaction is rolled back, so every daemon meets the same
    queue."""
    results: list[UUID | None] = []

    async def acquire(tx: Tx) -> None:
        row = await acquire_job(
            tx,
            organization_id=offer.organization_id,
            provisioners=offer.provisioners,
            tags=offer.tags,
            worker_id=new_uuid(),
            now=NOW,
            strict=strict,
        )
        results.append(row.id if row else None)
        raise UndoneError

    with pytest.raises(UndoneError):
        await world.ctx.db.run(acquire)
    return results[0]


async def random_daemons(world: World, choose: random.Random) -> TagRule:
    """Replace all daemons, some of them gone, draining or without their key; return the rule that follows from them."""

    async def clear(tx: Tx) -> None:
        await tx.execute(delete(provisioner_daemons))

    await world.ctx.db.run(clear)
    for number in range(choose.randrange(4)):
        row = DaemonRow(
            id=new_uuid(),
            organization_id=UUID(world.organization_id),
            key_id=choose.choice([*RESERVED_KEYS, UUID(int=77)]),
            created_at=NOW,
            last_seen_at=choose.choice([NOW, NOW, NOW - STALE_AFTER, NOW - STALE_AFTER + timedelta(seconds=1), None]),
            name=f"daemon-{number}",
            version="v2",
            api_version="1.18",
            provisioners=sorted(choose.sample(["terraform", "echo"], choose.choice([0, 1, 2]))),
            tags=choose.choice([dict(UNTAGGED), some_tags(choose)]),
        )
        await world.ctx.db.run(upsert_daemon, row, new_uuid())
    strict = choose.random() < 0.3
    daemons = await world.ctx.db.read(load_daemons, [])
    rule = tag_rule(daemons, NOW, strict=strict)
    loaded = await world.ctx.db.read(partial(load_tag_rule, strict=strict), [UUID(world.organization_id)], NOW)
    assert loaded == (TagRule(strict) if strict else rule)
    return rule


async def test_dispatcher_limits_previews() -> None:
    choose = random.Random(2)
    taken: set[tuple[int, bool]] = set()
    async with running_coderd(first_user=True, clock=FakeClock(NOW)) as world:
        await random_queue(world, choose)
        for running in (0, MAX_PREVIEWS):
            await world.ctx.db.run(mark_previews, choose, running)
            waiting = await world.ctx.db.read(list_waiting, [UUID(world.organization_id)])
            previews = {job.job_id for job in waiting if job.priority == PREVIEW_PRIORITY}
            for _ in range(40):
                kinds = frozenset(choose.sample(["terraform", "echo"], choose.choice([1, 2])))
                offer = DaemonOffer(UUID(world.organization_id), kinds, some_tags(choose))
                rule = await random_daemons(world, choose)
                chosen = pick(waiting, offer, rule=rule, running_previews=running)
                got = await acquired(world, offer, strict=rule.strict)
                assert got == (chosen.job_id if chosen else None), (offer, rule)
                taken.add((running, got in previews))
    assert (0, True) in taken and (MAX_PREVIEWS, True) not in taken and (MAX_PREVIEWS, False) in taken


async def test_dispatcher_follows_pick() -> None:
    choose = random.Random(1)
    rules = set()
    async with running_coderd(first_user=True, clock=FakeClock(NOW)) as world:
        await random_queue(world, choose)
        waiting = await world.ctx.db.read(list_waiting, [UUID(world.organization_id)])
        assert len(waiting) > 10
        for _ in range(80):
            kinds = frozenset(choose.sample(["terraform", "echo"], choose.choice([1, 2])))
            offer = DaemonOffer(choose.choice([UUID(world.organization_id), new_uuid()]), kinds, some_tags(choose))
            rule = await random_daemons(world, choose)
            chosen = pick(waiting, offer, rule=rule)
            got = await acquired(world, offer, strict=rule.strict)
            assert got == (chosen.job_id if chosen else None), (offer, rule)
            rules.add((rule.strict, len(rule.served)))
    assert len(rules) >= 5


async def test_sql_status_equals_derived_status() -> None:
    async with running_coderd(first_user=True, clock=FakeClock(NOW)) as world:
        rows = {row.id: row for row in await random_queue(world, random.Random(2))}

        async def statuses(tx: Tx) -> dict[UUID, str]:
            return {row.id: row[1] for row in await tx.execute(select(provisioner_jobs.c.id, STATUS))}

        stored = await world.ctx.db.read(statuses)
    assert stored == {
        row.id: derive_status(
            started_at=row.started_at, completed_at=row.completed_at, canceled_at=row.canceled_at, error=row.error
        )
        for row in rows.values()
    }
