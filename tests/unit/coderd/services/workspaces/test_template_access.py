"""Builds of users who lost access to the template: stopping and deleting stay possible, starting does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from coder.base.clock import FakeClock
from coder.coderd.services.tasks import task_builds
from coder.coderd.services.workspaces.autobuilds import NO_TEMPLATE_ACCESS, take_due_steps
from coder.coderd.services.workspaces.builds import build_creation
from tests.kit.provisioners.scripted_provisioner import ended, new_version
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import create, new_task, settled, task_world, workspace_world

TUESDAY = datetime(2026, 1, 6, 8, 0, 30, tzinfo=UTC)
SCHEDULE = "CRON_TZ=Europe/Berlin 30 9 * * 1-5"


async def _set_everyone(world: World, role: str) -> None:
    acl = {"group_perms": {world.organization_id: role}}
    answer = await world.patch(f"/api/v2/templates/{world.extra['template']['id']}/acl", acl)
    assert answer.status_code == 200, answer.text


async def _newer_version(world: World, *, active: bool = False) -> str:
    template_id = world.extra["template"]["id"]
    version = str((await new_version(world, template_id=template_id))["id"])
    await ended(world, f"/api/v2/templateversions/{version}")
    if active:
        answer = await world.patch(f"/api/v2/templates/{template_id}/versions", {"id": version})
        assert answer.status_code == 200, answer.text
    return version


async def _build(world: World, workspace_id: str, token: str, transition: str, version: str = "") -> int:
    """Return the status of a build; wait for the end of one that was queued."""
    body = {"transition": transition} | ({"template_version_id": version} if version else {})
    answer = await world.post(f"/api/v2/workspaces/{workspace_id}/builds", body, token=token)
    if answer.is_success:
        await settled(world, workspace_id)
    elif answer.status_code == 403:
        assert "template of this workspace" in answer.json()["message"], answer.text
    return answer.status_code


async def test_builds_require_template_access() -> None:
    async with workspace_world() as (world, _):
        _, token = await world.member("alice")
        bob, guest = await world.member("bob")
        workspace = await settled(world, (await create(world, "ws", token=token)).json()["id"])
        present = workspace["latest_build"]["template_version_id"]
        newer = await _newer_version(world)
        shared = {"user_roles": {bob: "admin"}, "group_roles": {}}
        assert (await world.patch(f"/api/v2/workspaces/{workspace['id']}/acl", shared, token=token)).is_success
        scopes = ["workspace:read", "workspace:start", "workspace:stop"]
        keys = {
            name: (await world.post("/api/v2/users/me/keys/tokens", {"scopes": [*scopes, *more]}, token=token)).json()[
                "key"
            ]
            for name, more in (("blind", []), ("operator", ["template:read"]))
        }
        callers = {"owner": token, "guest": guest, **keys}
        attempts = (
            ("stop", ""),
            ("start", ""),
            ("start", present),
            ("start", newer),
            ("stop", newer),
            ("stop", present),
        )
        allowed = dict.fromkeys(attempts, 201)
        refused = allowed | {("start", ""): 403, ("start", present): 403, ("start", newer): 403, ("stop", newer): 403}
        # an administrator's start between the attempts leaves the present version
        for role, by_caller in (("use", {"blind": refused}), ("", dict.fromkeys(callers, refused))):
            await _set_everyone(world, role)
            for caller, key in callers.items():
                assert await _build(world, workspace["id"], world.token, "start", present) == 201
                got = {attempt: await _build(world, workspace["id"], key, *attempt) for attempt in attempts}
                assert got == by_caller.get(caller, allowed), f"{caller} with template role {role!r}"
        await _set_everyone(world, "")
        assert (await create(world, "another", token=token)).status_code == 400
        assert await _build(world, workspace["id"], token, "delete") == 201


async def test_resume_requires_template_access() -> None:
    async with task_world() as (world, _):
        _, token = await world.member("alice")
        task = await new_task(world, token=token)
        path = f"/api/v2/tasks/me/{task['id']}"
        await _set_everyone(world, "")
        assert (await world.post(f"{path}/pause", token=token)).status_code == 202
        await settled(world, task["workspace_id"])
        assert (await world.post(f"{path}/resume", token=token)).status_code == 403
        await _set_everyone(world, "use")
        assert (await world.post(f"{path}/resume", token=token)).status_code == 202
        await settled(world, task["workspace_id"])


async def test_access_lost_before_queueing_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction that queues a build asks again: the check before it may be older than the loss."""

    async def _passed(*_: object) -> None:
        """The check while the user had access."""

    for module in (build_creation, task_builds):
        monkeypatch.setattr(module, "require_template_access", _passed)
    async with task_world() as (world, _):
        _, token = await world.member("alice")
        task = await new_task(world, token=token)
        assert await _build(world, task["workspace_id"], token, "stop") == 201
        await _set_everyone(world, "")
        assert await _build(world, task["workspace_id"], token, "start") == 403
        assert (await world.post(f"/api/v2/tasks/me/{task['id']}/resume", token=token)).status_code == 403


async def _notices(world: World, token: str) -> list[str]:
    inbox: Any = (await world.get("/api/v2/notifications/inbox", token=token)).json()["notifications"]
    return [item["content"] for item in inbox if NO_TEMPLATE_ACCESS in item["content"]]


async def test_autostart_keeps_present_version_only() -> None:
    clock = FakeClock(TUESDAY)
    async with workspace_world(clock=clock, session_duration=timedelta(days=30)) as (world, _):
        _, token = await world.member("alice")
        started = {}
        for name, updates in (("kept", "never"), ("updated", "always")):
            answer = await create(world, name, token=token, autostart_schedule=SCHEDULE, automatic_updates=updates)
            workspace = await settled(world, answer.json()["id"])
            started[name] = (workspace["id"], workspace["latest_build"]["template_version_id"])
            assert await _build(world, workspace["id"], token, "stop") == 201
        newer = await _newer_version(world, active=True)
        await _set_everyone(world, "")
        clock.advance(timedelta(days=1, hours=1).total_seconds())
        taken = await take_due_steps(world.ctx)
        assert [(str(step.workspace_id), step.step.reason) for step in taken] == [(started["kept"][0], "autostart")]
        kept, updated = [await settled(world, workspace_id) for workspace_id, _ in started.values()]
        assert kept["latest_build"]["template_version_id"] == started["kept"][1]
        assert kept["autostart_schedule"] == SCHEDULE
        assert (updated["latest_build"]["transition"], updated.get("autostart_schedule")) == ("stop", None)
        assert len(await _notices(world, token)) == 1
        assert await take_due_steps(world.ctx) == [], "the notification is sent once"
        await _set_everyone(world, "use")
        path = f"/api/v2/workspaces/{updated['id']}/autostart"
        assert (await world.put(path, {"schedule": SCHEDULE}, token=token)).is_success
        clock.advance(timedelta(days=1).total_seconds())
        assert str(updated["id"]) in [str(step.workspace_id) for step in await take_due_steps(world.ctx)]
        again = await settled(world, updated["id"])
        assert again["latest_build"]["template_version_id"] == newer
