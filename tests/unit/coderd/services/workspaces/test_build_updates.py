"""Watching all builds: what moves and may be read is told, once, and nothing at all where the experiment is off."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from coder.base.secret import Secret
from coder.net.errors import HttpError
from coder.net.policy import DialPolicy
from coder.net.websocket import connect_websocket
from tests.kit.schema import check
from tests.kit.workspaces import new_workspace, settled, workspace_world

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
            with trio.fail_after(20):
                while not told or (told[-1]["job_status"], told[-1]["workspace_name"]) != ("succeeded", "two"):
                    told.append(json.loads(await owners.receive_message() or ""))
                    check("WorkspaceBuildUpdate", told[-1])
                theirs = json.loads(await members.receive_message() or "")
        assert {one["workspace_id"] for one in told} == {first["id"], mine["id"]}
        assert len({json.dumps(one) for one in told}) == len(told), "each move is told once"
        assert theirs["workspace_id"] == mine["id"], "a member hears of no other's"
        assert (theirs["transition"], theirs["build_number"]) == ("start", 1)
        assert (await world.get(PATH)).status_code == 426
        await settled(world, mine["id"])


async def test_it_is_off_unless_asked_for() -> None:
    async with workspace_world() as (world, _):
        answer = await world.get(PATH)
        assert (answer.status_code, "'workspace-build-updates' experiment" in answer.text) == (403, True)
        with pytest.raises(HttpError) as refused:
            await connect_websocket(DialPolicy(world.url, token=Secret(world.token)), PATH)
        assert refused.value.status == 403
