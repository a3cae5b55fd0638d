"""Changes of a build are checked against its workspace and template at the time of writing."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

import httpx
import pytest

from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning import system_jobs
from coder.coderd.store.templates import system_templates
from coder.coderd.store.templates import templates as template_store
from coder.coderd.store.workspaces import system_builds, system_workspaces
from coder.coderd.store.workspaces import workspaces as workspace_store
from tests.kit.api.api_description import changing
from tests.kit.server.race_conditions import overtaken
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import new_workspace, without_daemon, workspace_world

_STATE = base64.b64encode(b"foreign").decode()
CHANGES: dict[str, Any] = {
    "PATCH /api/v2/workspacebuilds/<id:build>/cancel": None,
    "PUT /api/v2/workspacebuilds/<id:build>/state": {"state": _STATE},
}


def test_table_lists_every_build_change() -> None:
    assert changing("id:build") == CHANGES.keys()


async def _stored_state(world: World, build: dict[str, Any]) -> Any:
    async def read(tx: Any) -> Any:
        job = await system_jobs.get_job(tx, UUID(build["job"]["id"]))
        return job and job.canceled_at, await system_builds.get_state(tx, UUID(build["id"]))

    return await world.ctx.db.read(read)


async def _pending_build(world: World, name: str, user: str = "alice") -> dict[str, Any]:
    """Queue a stop build of a running workspace that no daemon acquires."""
    workspace = await new_workspace(world, name, user=user)
    await without_daemon(world)
    answer = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "stop"})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def _change_owner(tx: Any, workspace_id: UUID, owner: str) -> None:
    await system_workspaces.get_workspace(tx, workspace_id, lock=True)
    await workspace_store.update_workspace(tx, workspace_id, owner_id=UUID(owner))


@pytest.mark.parametrize("change", CHANGES)
async def test_build_unchanged_after_owner_change(change: str) -> None:
    async with workspace_world() as (world, _):
        alice, token = await world.member("alice")
        bob, _ = await world.member("bob")
        template = world.extra["template"]["id"]
        # She may write states of the workspaces she can read.
        perms = {"user_perms": {alice: "admin"}}
        assert (await world.patch(f"/api/v2/templates/{template}/acl", perms)).status_code == 200
        build = await _pending_build(world, "dev")
        before = await _stored_state(world, build)
        method, path = change.replace("<id:build>", build["id"]).split(" ")

        async def request() -> httpx.Response:
            return await world.request(method, path, json=CHANGES[change], token=token)

        async def change_owner(tx: Any) -> None:
            await _change_owner(tx, UUID(build["workspace_id"]), bob)

        answer = await overtaken(world, change_owner, request)
        assert answer.status_code == 404, answer.text
        assert await _stored_state(world, build) == before


@pytest.mark.parametrize("path", ["/api/v2/workspacebuilds/{build}/state", "/api/v2/workspaces/{workspace}/builds"])
async def test_state_rejected_for_former_template_admin(path: str) -> None:
    async with workspace_world() as (world, _):
        alice, token = await world.member("alice")
        template = UUID(world.extra["template"]["id"])
        perms = {"user_perms": {alice: "admin"}}
        assert (await world.patch(f"/api/v2/templates/{template}/acl", perms)).status_code == 200
        workspace = await new_workspace(world, "dev", user="alice")
        build = workspace["latest_build"]
        url = path.format(build=build["id"], workspace=workspace["id"])

        async def request() -> httpx.Response:
            if url.endswith("/state"):
                return await world.request("PUT", url, json={"state": _STATE}, token=token)
            # An orphan build forgets the resources: like a custom state, it is for template admins only.
            return await world.post(url, {"transition": "delete", "orphan": True}, token=token)

        async def revoke_admin(tx: Any) -> None:
            await system_templates.get_template(tx, template, lock=True)
            await template_store.update_template(tx, template, user_acl={})

        before = await _stored_state(world, build)
        answer = await overtaken(world, revoke_admin, request)
        assert answer.status_code in {403, 404}, answer.text
        assert await _stored_state(world, build) == before


async def test_cancel_rejected_after_template_change() -> None:
    async with workspace_world() as (world, _):
        _, token = await world.member("alice")
        template = UUID(world.extra["template"]["id"])
        path = f"/api/v2/templates/{template}"
        assert (await world.patch(path, {"allow_user_cancel_workspace_jobs": True})).status_code == 200
        build = await _pending_build(world, "dev")
        job_id = UUID(build["job"]["id"])

        async def request() -> httpx.Response:
            return await world.patch(f"/api/v2/workspacebuilds/{build['id']}/cancel", token=token)

        async def start_and_forbid(tx: Any) -> None:
            now = world.ctx.clock.now()
            await system_jobs.get_job(tx, job_id, lock=True)
            await job_store.update_job(tx, job_id, started_at=now, updated_at=now)
            await template_store.update_template(tx, template, allow_user_cancel_workspace_jobs=False)

        assert (await overtaken(world, start_and_forbid, request)).status_code == 403
