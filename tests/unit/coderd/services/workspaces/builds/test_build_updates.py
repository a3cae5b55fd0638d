"""The stream of all builds: each readable update once, and nothing without the experiment."""

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
from coder.coderd.store.workspaces import system_workspaces
from coder.coderd.store.workspaces.change_feed import Change
from coder.domain.access.policy import Class
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.agents.scripted_agent import eventually
from tests.kit.api.api_description import check
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, settled, workspace_world

PATH = "/api/experimental/watch-all-workspacebuilds"


async def test_updates_limited_to_readable_workspaces() -> None:
    async with workspace_world(experiments=("workspace-build-updates",)) as (world, _):
        _, token = await world.member()
        policy = DialPolicy(world.url, token=Secret(token))
        async with (
            await connect_websocket(policy, PATH) as members,
            await connect_websocket(policy.with_token(Secret(world.token)), PATH) as owners,
        ):
            first = await new_workspace(world, "one")
            own = await new_workspace(world, "two", token=token)
            updates: list[dict[str, Any]] = []
            with trio.fail_after(60):
                while not updates or (updates[-1]["job_status"], updates[-1]["workspace_name"]) != ("succeeded", "two"):
                    updates.append(json.loads(await owners.receive_message() or ""))
                    check("WorkspaceBuildUpdate", updates[-1])
                received = json.loads(await members.receive_message() or "")
        assert {item["workspace_id"] for item in updates} == {first["id"], own["id"]}
        assert len({json.dumps(item) for item in updates}) == len(updates), "each update is sent once"
        assert received["workspace_id"] == own["id"], "a member gets no updates of other users"
        assert (received["transition"], received["build_number"]) == ("start", 1)
        assert (await world.get(PATH)).status_code == 426
        await settled(world, own["id"])


async def _watching(world: World, count: int) -> None:
    """Wait until so many streams are watching."""

    async def are_watching() -> bool:
        return len(world.ctx.services.api.build_updates._watchers) == count

    await eventually(are_watching)


async def test_update_read_once_for_all_watchers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world(experiments=("workspace-build-updates",)) as (world, _):
        reads, read = [], system_workspaces.get_view
        policy = DialPolicy(world.url, token=Secret(world.token))
        workspace = await new_workspace(world, "one")
        updates, workspace_id = world.ctx.services.api.build_updates, UUID(workspace["id"])

        async def counted(tx: Any, key: UUID) -> Any:
            reads.append(key)
            return await read(tx, key)

        async with (
            await connect_websocket(policy, PATH) as first,
            await connect_websocket(policy, PATH) as second,
        ):
            await _watching(world, 2)
            monkeypatch.setattr(system_workspaces, "get_view", counted)
            await updates._broadcast(workspace_id)
            with trio.fail_after(60):
                assert await first.receive_message() == await second.receive_message()
            assert reads == [workspace_id]


@pytest.mark.parametrize("missed", ["resync", "too many", "unreadable"])
async def test_stream_ends_after_missed_update(missed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with workspace_world(experiments=("workspace-build-updates",)) as (world, _):
        workspace = await new_workspace(world, "one")
        policy = DialPolicy(world.url, token=Secret(world.token))
        updates = world.ctx.services.api.build_updates
        update = WorkspaceBuildUpdate(
            workspace_id=UUID(int=1),
            workspace_name="",
            build_id=UUID(int=2),
            transition="start",
            job_status="running",
            build_number=1,
        )
        readable = _ReadableUpdate(Class("workspace"), update)
        async with await connect_websocket(policy, PATH) as stream:
            await _watching(world, 1)
            if missed == "resync":
                world.ctx.services.api.workspace_changes._notify_all(Change("resync"))
            elif missed == "too many":
                for _ in range(BuildUpdates.LIMIT + 2):  # no other task runs meanwhile
                    updates._send(readable)
            else:

                async def broken(tx: Any, key: UUID) -> Any:
                    raise OSError

                monkeypatch.setattr(system_workspaces, "get_view", broken)
                await updates._broadcast(UUID(workspace["id"]))
            with trio.fail_after(60), contextlib.suppress(trio.BrokenResourceError):
                while await stream.receive_some():
                    pass
            assert stream.close_code == 1000


async def test_updates_need_experiment() -> None:
    async with workspace_world() as (world, _):
        answer = await world.get(PATH)
        assert (answer.status_code, "'workspace-build-updates' experiment" in answer.text) == (403, True)
        with pytest.raises(HttpError) as refused:
            await connect_websocket(DialPolicy(world.url, token=Secret(world.token)), PATH)
        assert refused.value.status == 403
