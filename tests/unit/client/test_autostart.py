"""Connections to a stopped workspace start it, whatever the server answers to the request for the build."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from coder.base.errors import CoderError
from coder.base.secret import Secret
from coder.client import ready
from coder.client.ready import Preparation
from coder.net.errors import HttpError
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy
from coder.rpc.proto.provisioner_pb2 import RichParameter
from tests.kit.provisioners.scripted_provisioner import agent, ended, new_version, resource, working_daemon
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import (
    build,
    build_answer,
    create,
    new_workspace,
    settled,
    without_daemon,
    workspace_world,
)

SESSIONS = 4


class Session:
    """Preparation of `name` by one command, with its output."""

    def __init__(self, world: World, name: str, token: str = "") -> None:
        self._policy = DialPolicy(world.url, token=Secret(token or world.token))
        self._name = name
        self.said: list[str] = []
        self.error: CoderError | None = None
        self.build: Any = None

    async def find(self, *, autostart: bool = True) -> None:
        async with HttpClient(self._policy) as http:
            try:
                found = await Preparation(http, self.said.append, autostart=autostart).find(self._name)
            except CoderError as error:
                self.error = error
            else:
                self.build = found.workspace.latest_build

    def waits(self) -> bool:
        return any("Another command" in text for text in self.said)


async def stopped(world: World, **body: Any) -> Any:
    workspace = await new_workspace(world, "ws", **body)
    return await build(world, workspace["id"], "stop")


@pytest.mark.parametrize("succeeds", [True, False])
async def test_parallel_sessions_share_build(*, succeeds: bool) -> None:
    async with workspace_world() as (world, answers):
        workspace = await stopped(world)
        await without_daemon(world)
        answers.build = build_answer if succeeds else lambda _job: {"error": "no room"}
        sessions = [Session(world, "ws") for _ in range(SESSIONS)]
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for session in sessions:
                    nursery.start_soon(session.find)
                while sum(session.waits() for session in sessions) < SESSIONS - 1:
                    await trio.sleep(0.01)
                async with working_daemon(world, answers):
                    await settled(world, workspace["id"])
                    while any(session.build is None and session.error is None for session in sessions):
                        await trio.sleep(0.01)
        latest = (await settled(world, workspace["id"]))["latest_build"]
        assert latest["build_number"] == workspace["latest_build"]["build_number"] + 1
        if succeeds:
            assert [str(session.build.id) for session in sessions] == [latest["id"]] * SESSIONS
        else:
            assert all(session.error and "could not be started: no room" in str(session.error) for session in sessions)


async def test_restart_of_another_command_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client of an editor reconnects between the stop and the start."""
    monkeypatch.setattr(ready, "_GRACE", 600.0)
    async with workspace_world() as (world, answers):
        workspace = await new_workspace(world, "ws")
        await without_daemon(world)
        path = f"/api/v2/workspaces/{workspace['id']}/builds"
        assert (await world.post(path, {"transition": "stop"})).status_code == 201
        session = Session(world, "ws")
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery, working_daemon(world, answers):
                nursery.start_soon(session.find)
                await settled(world, workspace["id"])
                started = await world.post(path, {"transition": "start"})
                assert started.status_code == 201
                while session.build is None:
                    await trio.sleep(0.01)
        assert str(session.build.id) == started.json()["id"] and "is stopped" not in "".join(session.said)


async def test_stop_of_another_command_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "_GRACE", 0.0)
    async with workspace_world() as (world, answers):
        workspace = await new_workspace(world, "ws")
        await without_daemon(world)
        stop = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "stop"})
        assert stop.status_code == 201
        session = Session(world, "ws")
        with trio.fail_after(60):
            async with working_daemon(world, answers):
                await session.find()
        assert session.build and session.build.build_number == 3


async def test_stopped_workspace_without_autostart() -> None:
    async with workspace_world() as (world, _):
        await stopped(world)
        session = Session(world, "ws")
        await session.find(autostart=False)
        assert session.error and "workspace must be started" in str(session.error)


async def new_active_version(world: World) -> Any:
    template = world.extra["template"]
    version = await new_version(world, template_id=template["id"])
    await ended(world, f"/api/v2/templateversions/{version['id']}")
    changed = await world.patch(f"/api/v2/templates/{template['id']}/versions", {"id": version["id"]})
    assert changed.is_success, changed.text
    return version


async def test_required_active_version_is_used() -> None:
    """Members must start the active version; the workspace has an older one."""
    async with workspace_world() as (world, _):
        _, token = await world.member("carl")
        made = await create(world, "ws", token=token)
        assert made.status_code == 201, made.text
        await settled(world, made.json()["id"])
        await build(world, made.json()["id"], "stop")
        version = await new_active_version(world)
        template = f"/api/v2/templates/{world.extra['template']['id']}"
        assert (await world.patch(template, {"require_active_version": True})).is_success
        session = Session(world, "ws", token)
        await session.find()
        assert session.build and str(session.build.template_version_id) == version["id"], session.error
        assert any("updated to the current active" in text for text in session.said)


@pytest.mark.parametrize("policy", ["always", "never"])
async def test_automatic_updates_choose_version(policy: str) -> None:
    async with workspace_world() as (world, _):
        workspace = await stopped(world)
        path = f"/api/v2/workspaces/{workspace['id']}/autoupdates"
        assert (await world.put(path, {"automatic_updates": policy})).is_success
        version = await new_active_version(world)
        session = Session(world, "ws")
        await session.find()
        before = workspace["latest_build"]["template_version_id"]
        assert str(session.build.template_version_id) == (version["id"] if policy == "always" else before)


async def test_forbidden_start_is_reported() -> None:
    """A user who can read the workspace, but not start it."""
    async with workspace_world() as (world, _):
        await stopped(world)
        _, token = await world.member("auditor", roles=["template-admin"])
        session = Session(world, "admin/ws", token)
        await session.find()
        assert isinstance(session.error, HttpError) and session.error.status in {403, 404}


async def test_missing_value_names_command() -> None:
    """An automatic update can lead to a version with a new required parameter."""
    async with workspace_world() as (world, answers):
        workspace = await stopped(world)
        path = f"/api/v2/workspaces/{workspace['id']}/autoupdates"
        assert (await world.put(path, {"automatic_updates": "always"})).is_success
        required = RichParameter(name="need", type="string", mutable=True, required=True)
        imported = {"start_resources": [resource("box", agents=[agent()])], "rich_parameters": [required]}
        answers.import_ = lambda _job: imported
        await new_active_version(world)
        session = Session(world, "ws")
        await session.find()
        assert isinstance(session.error, HttpError) and session.error.status == 400
        assert session.said[-1] == "Give the values with `coder start ws`, then connect again."
