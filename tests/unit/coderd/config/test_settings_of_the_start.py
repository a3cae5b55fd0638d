"""Settings a server reads once, at its start, and those of loops."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import trio
from sqlalchemy import text

from coder.base.clock import FakeClock
from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.coderd.store.engine.database import let_others_run
from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.paths.derpmap import DerpNode, DerpRegion
from coder.mesh.core.wire import derp, derp_info
from coder.mesh.drivers.framing import FrameBuffer
from tests.kit.agents.scripted_agent import eventually
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import world_with_preset

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BACKOFF = {"workspace_prebuilds_reconciliation_backoff_interval": 60 * MINUTE}
LOOKBACK = {"workspace_prebuilds_reconciliation_backoff_lookback_period": MINUTE}
_FAILED = text("SELECT count(*) FROM provisioner_jobs WHERE error <> '' AND completed_at IS NOT NULL")
_OPEN = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query NOT LIKE '%LISTEN%'")


async def most_at_once(world: World, asked: int, expected: int) -> int:
    """Return the maximum of concurrent units of work in the database, when so many start together."""
    inside = maximum = 0

    async def unit(tx: Any) -> None:
        nonlocal inside, maximum
        inside += 1
        maximum = max(maximum, inside)
        while maximum < expected:
            await let_others_run()
        for _ in range(20):
            await tx.execute(text("SELECT 1"))
        inside -= 1

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(asked):
                nursery.start_soon(world.ctx.db.read, unit)
    return maximum


async def few_are_open(world: World, kept: int) -> bool:
    """Return whether connections above the idle limit are closed after the burst."""

    async def connections(tx: Any) -> int:
        return int((await tx.execute(_OPEN)).scalar_one())

    return 1 <= await world.ctx.db.read(connections) <= kept


async def rate_told(world: World) -> int:
    """Return the rate that the relay announces to a client."""
    server = world.ctx.services.relay.derp.server
    assert server is not None
    key = PrivateKey(bytes(range(1, 33)))
    async with trio.open_nursery() as nursery:
        dial = server.in_memory_dialer(nursery)
        node = DerpNode(name="1a", region_id=1, host_name="")
        transport = await dial(DerpRegion(1, "one", "One", (node,)), node)
        inbox = FrameBuffer(transport.stream, transport.leftover)
        hello = await inbox.frame()
        assert isinstance(hello, derp.ServerKey)
        box = SharedBox(key, hello.key)
        info = derp_info.seal_client_info(box, key.public, bytes(24), derp_info.ClientInfo())
        await transport.stream.send_all(info.encode())
        answer = await inbox.frame()
        assert isinstance(answer, derp.SealedServerInfo)
        announced = derp_info.open_server_info_untrusted(box, answer)
        nursery.cancel_scope.cancel()
    return announced.rate_bytes_per_second


async def failed(tx: Any) -> int:
    return int((await tx.execute(_FAILED)).scalar_one())


async def prebuilt_after(world: World, wait: timedelta, failures: int, **settings: Any) -> int:
    """Return the number of builds started so long after the last of so many failures, with these settings."""
    clock, before = world.ctx.clock, world.ctx.config
    assert isinstance(clock, FakeClock)

    async def has_failed() -> bool:
        return int(await world.ctx.db.read(failed)) == failures

    await eventually(has_failed)
    clock.advance(wait.total_seconds())
    world.ctx.config = replace(before, **settings)
    done = await reconcile(world.ctx)
    world.ctx.config = before
    return done.created


async def test_settings_of_start_and_loops() -> None:
    at_start: dict[str, Any] = {
        "postgres_conn_max_open": 3,
        "postgres_conn_max_idle": "2",
        "derp_server_bytes_per_second": 7_000_000,
    }
    at_start |= {"workspace_prebuilds_failure_hard_limit": 0}
    async with world_with_preset(clock=FakeClock(NOW), **at_start) as (world, answers, _):
        assert await rate_told(world) == 7_000_000
        assert await most_at_once(world, 6, 3) == 3
        await eventually(partial(few_are_open, world, 2))

        answers.build = lambda job: {"error": "no quota left in the cloud"}
        assert (await reconcile(world.ctx)).created == 1
        assert await prebuilt_after(world, 2 * MINUTE, 1, **BACKOFF) == 0
        assert await prebuilt_after(world, MINUTE, 1, **BACKOFF, **LOOKBACK) == 1
        assert await prebuilt_after(world, 3 * MINUTE, 2) == 1
