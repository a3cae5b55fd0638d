"""Every row of `loop_tries.py`, written as a user would, then a turn of every loop for everybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from coder.base.clock import FakeClock
from coder.coderd.loops import (
    autobuild,
    key_rotation,
    last_use,
    notifications,
    prebuilds,
    proxy_health,
    purge,
    reaper,
    reports,
    rollouts,
)
from tests.attacks import loop_tries
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, workspace_world
from tests.unit.coderd.services.workspaces.test_autobuilds import TUESDAY

TURNS = (autobuild, prebuilds, purge, reports, rollouts, notifications, last_use, key_rotation, proxy_health)
Write = Callable[[World, str, str], Awaitable[httpx.Response]]


def _writes() -> Iterator[tuple[str, Write]]:
    for name, body in loop_tries.TEMPLATE_CHANGES.items():
        yield f"template: {name}", _write("patch", "/api/v2/templates/{template}", body)
    for name, schedule in loop_tries.SCHEDULES.items():
        yield f"autostart: {name}", _write("put", "/api/v2/workspaces/{workspace}/autostart", {"schedule": schedule})
        yield f"quiet hours: {name}", _write("put", "/api/v2/users/me/quiet-hours", {"schedule": schedule})
    for name, ttl in loop_tries.WORKSPACE_TIMES.items():
        yield name, _write("put", "/api/v2/workspaces/{workspace}/ttl", {"ttl_ms": ttl})
    for name, deadline in loop_tries.DEADLINES.items():
        yield f"deadline: {name}", _write("put", "/api/v2/workspaces/{workspace}/extend", {"deadline": deadline})
    for name, shown in loop_tries.USER_NAMES.items():
        if "\ud800" not in shown:  # no client can send it: test_attacks_by_letters.py escapes it
            body = {"username": "admin", "name": shown}
            yield f"name: {name}", _write("put", "/api/v2/users/me/profile", body)


def _write(method: str, path: str, body: Any) -> Write:
    async def write(world: World, template: str, workspace: str) -> httpx.Response:
        return await world.request(method.upper(), path.format(template=template, workspace=workspace), json=body)

    return write


@pytest.mark.soak
async def test_no_row_stops_a_loop() -> None:
    async with workspace_world(clock=FakeClock(TUESDAY), session_duration=timedelta(days=30)) as (world, _):
        workspace = (await new_workspace(world, "w"))["id"]
        template = world.extra["template"]["id"]
        for name, write in _writes():
            answer = await write(world, template, workspace)
            assert answer.status_code < 500, (name, answer.text)
            if answer.status_code < 300:
                for loop in TURNS:  # raises what would end the turn for everybody
                    await loop.turn(world.ctx, world.ctx.log)
                await reaper.turn(world.ctx, world.ctx.log, timedelta())
