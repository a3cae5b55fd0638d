"""Loops of several servers on one database: one of them takes each due step.

Autostart and autostop are in test_autobuild.py, site secrets in test_site_secrets.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import trio

from coder.base.clock import FakeClock
from coder.coderd.services.foundation.signing_keys import rotate_due
from coder.coderd.services.network import resume_tokens
from coder.coderd.services.provisioning.reaping import reap
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.coderd.store.notifications import notifications
from coder.coderd.store.notifications.notifications import MessageRow
from coder.coderd.store.site import purge
from coder.domain.notifications.notification_templates import TEST
from tests.kit.provisioners.scripted_provisioner import new_version
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import world_with_preset

T = TypeVar("T")

REPLICAS = 4


async def at_once(turn: Callable[[], Awaitable[T]]) -> list[T]:
    """Return the result of each replica for a turn that all begin together."""
    results: list[T] = []

    async def replica() -> None:
        results.append(await turn())

    async with trio.open_nursery() as nursery:
        for _ in range(REPLICAS):
            nursery.start_soon(replica)
    return results


async def test_reaping_and_rotation_happen_once() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        ctx = world.ctx
        await new_version(world)
        await ctx.services.signing_keys.get(resume_tokens.FEATURE)
        clock.advance(timedelta(minutes=31).total_seconds())
        assert sum(map(len, await at_once(lambda: reap(ctx)))) == 1
        clock.advance(timedelta(days=31).total_seconds())
        assert sum(turn.count(resume_tokens.FEATURE) for turn in await at_once(lambda: rotate_due(ctx))) == 1


async def test_lease_and_purge_happen_once() -> None:
    now, soon = datetime(2100, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, 0, 1, tzinfo=UTC)  # no loop finds them due
    async with running_coderd(first_user=True, notifications_inbox_enabled=False) as world:
        db = world.ctx.db
        row = MessageRow(UUID(int=1), TEST, UUID(world.user_id), "webhook", {}, (), 0, now)
        await db.run(notifications.insert_message, row)
        leased = await at_once(lambda: db.run(notifications.lease, now, soon, {"webhook"}))
        assert sum(message is not None for message in leased) == 1

        async def purge_twice(tx: Any) -> tuple[Any, Any]:
            own = await purge.purge(tx, {})
            async with db.engine.begin() as other:
                return own, await purge.purge(other, {})

        assert await db.run(purge_twice) == ({}, None)


async def test_prebuilds_are_reconciled_once() -> None:
    async with world_with_preset(instances=2) as (world, _, _):
        assert sum(done.created for done in await at_once(lambda: reconcile(world.ctx))) == 2
