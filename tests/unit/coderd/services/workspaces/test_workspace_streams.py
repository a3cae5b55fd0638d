"""Streams of workspaces and agents: shared reads, changes, timeouts, and lost access."""

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
from coder.coderd.services.workspaces.workspace_streams import Snapshots, watch_workspace
from coder.coderd.store.agents.agent_logs import NewAgentLog, append_logs
from coder.coderd.store.workspaces.change_feed import Change
from tests.kit.provisioners.scripted_provisioner import ended, new_version
from tests.kit.server.workspaces import new_workspace, workspace_world


def _decode(item: Any) -> Workspace:
    """Decode an item of the stream."""
    return codec.decode(bytes(item), Workspace)


async def test_watchers_share_one_read_per_change(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        workspace_id = UUID(workspace["id"])
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        reads = 0
        original = Snapshots._read

        async def counted(self: Snapshots, key: Any) -> Any:
            nonlocal reads
            reads += 1
            return await original(self, key)

        monkeypatch.setattr(Snapshots, "_read", counted)
        favorites = []

        async def follow(task_status: trio.TaskStatus[Any]) -> None:
            started = False
            async with aclosing(watch_workspace(world.ctx, subject, workspace_id)) as stream:  # type: ignore[type-var]
                async for item in stream:
                    if item is not None:
                        favorite = _decode(item).favorite
                        favorites.append(favorite)
                        if not started:
                            started = True
                            task_status.started()
                        if favorite:
                            return

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for _number in range(40):
                    await nursery.start(follow)
                before = reads
                assert (await world.put(f"/api/v2/workspaces/{workspace_id}/favorite")).status_code == 204
        assert favorites.count(True) == 40
        assert before <= 2
        assert reads - before <= 2


async def test_streams_end_with_lost_access() -> None:
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
                assert _decode(await anext(stream)).name == "w"
                assert (await world.delete(path)).status_code == 204
                assert await anext(stream, None) is None
        # an agent's streams end with lost access, too
        build = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]
        agent = UUID(next(item["agents"][0]["id"] for item in build["resources"] if item.get("agents")))
        changes = world.ctx.services.api.workspace_changes
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


async def test_agent_timeout_is_streamed() -> None:
    clock = FakeClock()
    async with workspace_world(clock=clock) as (world, _):
        workspace = await new_workspace(world, "w")
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        with trio.fail_after(60):
            async with aclosing(watch_workspace(world.ctx, subject, UUID(workspace["id"]))) as stream:  # type: ignore[type-var]
                first = _decode(await anext(stream))
                assert first.latest_build.resources[0].agents[0].status == "connecting"  # type: ignore[index]
                clock.advance(121)
                world.ctx.services.api.workspace_changes._notify_all(Change("resync"))
                assert _decode(await anext(stream)).latest_build.resources[0].agents[0].status == "timeout"  # type: ignore[index]


async def test_template_changes_reach_watchers() -> None:
    async with workspace_world() as (world, _):
        workspace = await new_workspace(world, "w")
        template = workspace["template_id"]
        version = (await new_version(world, template_id=template))["id"]
        await ended(world, f"/api/v2/templateversions/{version}")
        subject = await user_subject(world.ctx, UUID(world.user_id))
        assert subject is not None
        with trio.fail_after(60):
            async with aclosing(watch_workspace(world.ctx, subject, UUID(workspace["id"]))) as stream:  # type: ignore[type-var]
                assert not _decode(await anext(stream)).outdated
                assert (await world.patch(f"/api/v2/templates/{template}/versions", {"id": version})).status_code == 200
                assert _decode(await anext(stream)).outdated
                assert (await world.patch(f"/api/v2/templates/{template}", {"icon": "/x.svg"})).status_code == 200
                assert _decode(await anext(stream)).template_icon == "/x.svg"
