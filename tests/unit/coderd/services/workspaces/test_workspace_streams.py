"""Watchers share their reading, hear of changes soon, and of what only time changes."""

from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
import trio

from coder.api.base import codec
from coder.api.base.refusals import NotFound
from coder.api.workspaces.workspaces import Workspace
from coder.base.clock import FakeClock
from coder.coderd.services.access.authentication import user_subject
from coder.coderd.services.workspaces.agent_streams import follow_logs, watch_metadata
from coder.coderd.services.workspaces.change_feed import Watch, WorkspaceChangeFeed
from coder.coderd.services.workspaces.workspace_streams import Snapshots, watch_workspace
from coder.coderd.store.agents.agent_logs import NewAgentLog, append_logs
from coder.coderd.store.workspaces.change_feed import Change, parse_change
from tests.kit.server.workspaces import new_workspace, workspace_world


def _seen(told: Any) -> Workspace:
    """What a watcher was told, read back."""
    return codec.decode(bytes(told), Workspace)


async def test_many_watchers_cost_one_reading_per_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        workspace_id = UUID(workspace["id"])
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        readings = 0
        plain = Snapshots._read

        async def counted(self: Snapshots, which: Any) -> Any:
            nonlocal readings
            readings += 1
            return await plain(self, which)

        monkeypatch.setattr(Snapshots, "_read", counted)
        seen = []

        async def follow(task_status: trio.TaskStatus[Any]) -> None:
            started = False
            async with aclosing(watch_workspace(world.ctx, subject, workspace_id)) as stream:  # type: ignore[type-var]
                async for shown in stream:
                    if shown is not None:
                        favorite = _seen(shown).favorite
                        seen.append(favorite)
                        if not started:
                            started = True
                            task_status.started()
                        if favorite:
                            return

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for _number in range(40):
                    await nursery.start(follow)
                before = readings
                assert (await world.put(f"/api/v2/workspaces/{workspace_id}/favorite")).status_code == 204
        assert seen.count(True) == 40
        assert before <= 2
        assert readings - before <= 2


async def test_a_stranger_sees_nothing_and_a_late_stranger_no_more() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        user_id, _token = await world.member("bob")
        subject = await user_subject(world.ctx, UUID(user_id))
        assert subject is not None
        with pytest.raises(NotFound):
            await anext(watch_workspace(world.ctx, subject, UUID(workspace["id"])))
        path = f"/api/v2/workspaces/{workspace['id']}/acl"
        assert (await world.patch(path, {"user_roles": {user_id: "use"}})).status_code == 204
        with trio.fail_after(60):
            async with aclosing(watch_workspace(world.ctx, subject, UUID(workspace["id"]))) as stream:  # type: ignore[type-var]
                assert _seen(await anext(stream)).name == "w"
                assert (await world.delete(path)).status_code == 204
                assert await anext(stream, None) is None
        # what the agent says ends for a late stranger, too
        build = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]
        agent = UUID(next(one["agents"][0]["id"] for one in build["resources"] if one.get("agents")))
        changes = world.ctx.part(WorkspaceChangeFeed)
        for watch in (follow_logs, watch_metadata):
            assert (await world.patch(path, {"user_roles": {user_id: "use"}})).status_code == 204
            line = NewAgentLog(world.ctx.clock.now(), "a line", "info")
            await world.ctx.db.run(partial(append_logs, max_length=1 << 20), agent, uuid4(), [line])
            with trio.fail_after(60):
                async with aclosing(watch(world.ctx, subject, agent)) as stream:  # type: ignore[type-var]
                    assert await anext(stream) is not None
                    assert (await world.delete(path)).status_code == 204
                    changes._notify_all(Change("resync"))
                    assert await anext(stream, None) is None


async def test_a_timeout_nobody_writes_is_seen() -> None:
    clock = FakeClock()
    async with workspace_world(clock=clock) as (world, _):
        workspace = await new_workspace(world, "w")
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        with trio.fail_after(60):
            async with aclosing(watch_workspace(world.ctx, subject, UUID(workspace["id"]))) as stream:  # type: ignore[type-var]
                first = _seen(await anext(stream))
                assert first.latest_build.resources[0].agents[0].status == "connecting"  # type: ignore[index]
                clock.advance(121)
                world.ctx.part(WorkspaceChangeFeed)._notify_all(Change("resync"))
                assert _seen(await anext(stream)).latest_build.resources[0].agents[0].status == "timeout"  # type: ignore[index]


async def test_equal_changes_are_one_and_too_many_are_a_resync() -> None:
    watch = Watch()
    change = Change("state", UUID(int=1), UUID(int=2))
    watch.put(change)
    watch.put(change)
    assert await watch.next() == change
    assert watch.drain() == []
    for number in range(1001):
        watch.put(Change("state", UUID(int=1), UUID(int=number)))
    assert await watch.next() == Change("resync")


def test_notices_are_read_back() -> None:
    text = f"logs {UUID(int=1)} {UUID(int=2)} {UUID(int=3)}"
    assert parse_change(text) == Change("logs", UUID(int=1), UUID(int=2), UUID(int=3))
    with pytest.raises(ValueError, match="not enough values"):
        parse_change("nonsense")
