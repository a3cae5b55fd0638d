"""Actions that end each state work; tests/unit/domain/provisioning/test_allowed_actions.py has the rules."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from coder.base.clock import FakeClock
from coder.coderd.services.provisioning.reaping import reap
from coder.domain.provisioning.allowed_actions import SILENT_AFTER
from coder.domain.provisioning.jobs import HUNG_AFTER
from coder.domain.provisioning.provisioners import STALE_AFTER
from tests.kit.provisioners.scripted_provisioner import FakeDaemon, connected_daemon, ended, new_template
from tests.kit.server.server_in_process import World, running_coderd

BOX = {"attributes": {"id": "c0ffee", "env": ["SECRET=1"]}}
STATE = json.dumps(
    {
        "version": 4,
        "resources": [
            {"mode": "managed", "type": "docker_container", "name": "box", "instances": [BOX]},
            {"mode": "managed", "type": "null_resource", "name": "x", "instances": [{}]},
        ],
    }
).encode()


async def new_workspace(world: World, daemon: FakeDaemon, token: str) -> dict[str, Any]:
    """Return a workspace with a pending build, of a template that forbids users to cancel."""
    template = await new_template(world, allow_user_cancel_workspace_jobs=False)
    await daemon.complete_import(await daemon.acquire())
    await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
    answer = await world.post("/api/v2/users/me/workspaces", {"name": "ws", "template_id": template["id"]}, token=token)
    assert answer.status_code == 201, answer.text
    entries: dict[str, Any] = answer.json()
    return entries


async def build_entries(world: World) -> list[tuple[str, int]]:
    """Return audit entries of ended builds, newest first."""
    answer = (await world.get("/api/v2/audit", params={"q": "resource_type:workspace_build", "limit": "100"})).json()
    return [(entry["action"], entry["status_code"]) for entry in answer["audit_logs"]]


async def test_owner_can_end_every_state() -> None:
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world, connected_daemon(world) as daemon:
        _, alice = await world.member("alice")
        _, eve = await world.member("eve")
        workspace = await new_workspace(world, daemon, alice)
        path, build = f"/api/v2/workspaces/{workspace['id']}", workspace["latest_build"]["id"]
        # pending: canceled immediately, although the template forbids it
        assert (await world.patch(f"/api/v2/workspacebuilds/{build}/cancel", token=alice)).status_code == 200
        again = await world.post(f"{path}/builds", {"transition": "start"}, token=alice)
        build = again.json()["id"]
        # running, and the daemon is alive: the template decides
        job = await daemon.acquire()
        await daemon.update(job, workspace_state=STATE)
        refused = await world.patch(f"/api/v2/workspacebuilds/{build}/cancel", token=alice)
        assert refused.status_code == 403
        assert (await world.post(f"{path}/abandon", token=alice)).status_code == 409
        # running, and the daemon is silent: the template does not matter
        clock.advance(SILENT_AFTER.total_seconds())
        assert (await world.patch(f"/api/v2/workspacebuilds/{build}/cancel", token=alice)).status_code == 200
        listed = (await world.get(f"{path}/inventory", token=alice)).json()
        assert [resource["id"] for resource in listed["resources"]] == ["c0ffee", ""]
        assert "SECRET" not in json.dumps(listed)
        for token, status in ((eve, 404), ("", 401)):
            assert (await world.get(f"{path}/inventory", token=token)).status_code == status
            assert (await world.post(f"{path}/abandon", token=token)).status_code == status
        clock.advance(SILENT_AFTER.total_seconds())  # the daemon missed the cancellation as well
        abandoned = await world.post(f"{path}/abandon", token=alice)
        assert abandoned.status_code == 200, abandoned.text
        assert abandoned.json() == listed
        assert (await world.get(path, token=alice)).status_code == 410
        assert (await world.post(f"{path}/abandon", token=alice)).status_code == 410
        with pytest.raises(Exception, match="already completed"):
            await daemon.update(job)


async def test_reaped_build_is_reported() -> None:
    """The owner gets a notification, and metrics count it."""
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world, connected_daemon(world) as daemon:
        _, alice = await world.member("alice")
        await new_workspace(world, daemon, alice)
        await daemon.acquire()
        clock.advance(HUNG_AFTER.total_seconds())
        assert len(await reap(world.ctx)) == 1
        assert await build_entries(world) == [("start", 500)]
        assert 'coderd_workspace_builds_total{status="failed"' in await world.ctx.services.metrics.exposition()


async def test_pending_build_can_be_abandoned() -> None:
    """No connected daemon could take it."""
    clock = FakeClock(datetime.now(UTC))
    async with running_coderd(first_user=True, clock=clock) as world:
        _, alice = await world.member("alice")
        async with connected_daemon(world) as daemon:
            workspace = await new_workspace(world, daemon, alice)
        clock.advance(STALE_AFTER.total_seconds())
        answer = await world.post(f"/api/v2/workspaces/{workspace['id']}/abandon", token=alice)
        assert answer.json() == {"workspace_id": workspace["id"], "readable": True, "resources": []}
        last = (await world.get(f"/api/v2/workspaces/{workspace['id']}?include_deleted=true", token=alice)).json()
        assert (last["latest_build"]["transition"], last["latest_build"]["status"]) == ("delete", "deleted")
        assert await build_entries(world) == [("delete", 200)], "as of every build that ended"
