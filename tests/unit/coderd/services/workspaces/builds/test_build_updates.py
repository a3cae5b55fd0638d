"""Watching all builds: what moves and may be read is told, once, and nothing at all where the experiment is off."""

from __future__ import annotations

import contextlib
import json
from typing import Any
from uuid import UUID

import pytest
import trio

from coder.api.workspaces.builds import WorkspaceBuildUpdate
from coder.base.secret import Secret
from coder.coderd.services.workspaces.builds.build_updates import BuildUpdates, _ReadableUpdate
from coder.coderd.services.workspaces.change_feed import WorkspaceChangeFeed
from coder.coderd.store.workspaces import workspaces as workspace_store
from coder.coderd.store.workspaces.change_feed import Change
from coder.domain.access.policy import Resource
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.agents.scripted_agent import eventually
from tests.kit.api.api_description import check
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, settled, workspace_world

PATH = "/api/experimental/watch-all-workspacebuilds"


async def test_builds_are_told_to_whom_they_concern() -> None:
    async with workspace_world(experiments=("workspace-build-updates",)) as (world, _):
        _, token = await world.member()
        policy = DialPolicy(world.url, token=Secret(token))
        async with (
            await connect_websocket(policy, PATH) as members,
            await connect_websocket(policy.with_token(Secret(world.token)), PATH) as owners,
        ):
            first = await new_workspace(world, "one")
            mine = await new_workspace(world, "two", token=token)
            told: list[dict[str, Any]] = []
            with trio.fail_after(60):
                while not told or (told[-1]["job_status"], told[-1]["workspace_name"]) != ("succeeded", "two"):
                    told.append(json.loads(await owners.receive_message() or ""))
                    check("WorkspaceBuildUpdate", told[-1])
                theirs = json.loads(await members.receive_message() or "")
        assert {one["workspace_id"] for one in told} == {first["id"], mine["id"]}
        assert len({json.dumps(one) for one in told}) == len(told), "each update is told once"
        assert theirs["workspace_id"] == mine["id"], "a member hears of no other's"
        assert (theirs["transition"], theirs["build_number"]) == ("start", 1)
        assert (await world.get(PATH)).status_code == 426
        await settled(world, mine["id"])


async def _watching(world: World, count: int) -> None:
    """Waits until so many streams hear of moves."""

    async def heard() -> bool:
        return len(world.ctx.part(BuildUpdates)._watchers) == count

    await eventually(heard)


async def test_a_move_is_read_once_for_all_who_watch_and_not_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world(experiments=("workspace-build-updates",)) as (world, _):
        reads, read = [], workspace_store.get_view
        policy = DialPolicy(world.url, token=Secret(world.token))
        workspace = await new_workspace(world, "one")
        moves, workspace_id = world.ctx.part(BuildUpdates), UUID(workspace["id"])

        async def counted(tx: Any, which: UUID) -> Any:
            reads.append(which)
            return await read(tx, which)

        async with (
            await connect_websocket(policy, PATH) as one,
            await connect_websocket(policy, PATH) as two,
        ):
            await _watching(world, 2)
            monkeypatch.setattr(workspace_store, "get_view", counted)
            await moves._broadcast(workspace_id)
            with trio.fail_after(60):
                assert await one.receive_message() == await two.receive_message()
            assert reads == [workspace_id]


@pytest.mark.parametrize("missed", ["resync", "too many", "unreadable"])
async def test_a_stream_that_missed_something_ends(missed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world(experiments=("workspace-build-updates",)) as (world, _):
        workspace = await new_workspace(world, "one")
        policy = DialPolicy(world.url, token=Secret(world.token))
        moves = world.ctx.part(BuildUpdates)
        update = WorkspaceBuildUpdate(
            workspace_id=UUID(int=1),
            workspace_name="",
            build_id=UUID(int=2),
            transition="start",
            job_status="running",
            build_number=1,
        )
        readable = _ReadableUpdate(Resource("workspace"), update)
        async with await connect_websocket(policy, PATH) as stream:
            await _watching(world, 1)
            if missed == "resync":
                world.ctx.part(WorkspaceChangeFeed)._notify_all(Change("resync"))
            elif missed == "too many":
                for _ in range(BuildUpdates.LIMIT + 2):  # nobody else runs meanwhile
                    moves._send(readable)
            else:

                async def broken(tx: Any, which: UUID) -> Any:
                    raise OSError

                monkeypatch.setattr(workspace_store, "get_view", broken)
                await moves._broadcast(UUID(workspace["id"]))
            with trio.fail_after(60), contextlib.suppress(trio.BrokenResourceError):
                while await stream.receive_some():
                    pass
            assert stream.close_code == 1000


async def test_it_is_off_unless_asked_for() -> None:
    async with workspace_world() as (world, _):
        answer = await world.get(PATH)
        assert (answer.status_code, "'workspace-build-updates' experiment" in answer.text) == (403, True)
        with pytest.raises(HttpError) as refused:
            await connect_websocket(DialPolicy(world.url, token=Secret(world.token)), PATH)
        assert refused.value.status == 403
