"""Previews of updates: what they plan with, who may ask, their place in the queue, and when they are canceled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from coder.base.clock import FakeClock
from coder.coderd.services.provisioning.job_queue import hold_preview_slot
from coder.coderd.services.workspaces.previews.preview_input import LEASE, MAX_DURATION
from coder.coderd.services.workspaces.previews.previews import MAX_ERROR, MAX_ERROR_LINES
from coder.coderd.store.provisioning import jobs as job_store
from coder.coderd.store.provisioning.system_jobs import get_job
from coder.coderd.store.workspaces import system_builds
from coder.domain.provisioning.queue import MAX_PREVIEWS, PREVIEW_PRIORITY
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import (
    connected_daemon,
    job_ended,
    line,
    new_version,
    resource,
    working_daemon,
)
from tests.kit.server.previews import answering, finished, other_version, path_of, planned, preview_world, started
from tests.kit.server.workspaces import (
    build,
    new_workspace,
    without_daemon,
)


async def test_preview_of_running_workspace() -> None:
    async with preview_world() as (world, answers):
        workspace = await new_workspace(world)
        version = await other_version(world)
        preview = await started(world, workspace, version)
        assert preview["changes"]["to_version_id"] == version
        assert [(item["path"], item["change"]) for item in preview["changes"]["files"]] == [("main.tf", "changed")]
        assert preview["changes"]["parameters"] == []
        done = await finished(world, workspace, preview)
        assert (done["status"], done["error"]) == ("succeeded", "")
        plan = done["plan"]
        assert (plan["known"], plan["disk"], plan["counts"]) == (True, "kept", {"keep": 1, "restart": 1})
        assert plan["summary"][0] == "Your disk stays."
        assert plan["agents"] == [{"name": "main", "action": "keep", "restarts": True}]
        actions = {item["address"]: item["action"] for item in plan["resources"]}
        assert actions == {"docker_volume.home": "keep", "docker_container.box": "restart"}
        assert answers.seen[-1].template_dry_run.preview


async def test_plan_has_state_and_no_secrets() -> None:
    async with preview_world() as (world, answers):
        workspace = await new_workspace(world)
        built = answers.seen[-1].workspace_build
        assert built.metadata.workspace_owner_session_token and built.metadata.workspace_owner_ssh_private_key
        build_id = UUID(workspace["latest_build"]["id"])
        before = await world.ctx.db.read(system_builds.get_state, build_id)
        await finished(world, workspace, await started(world, workspace, await other_version(world)))
        sent = answers.seen[-1].template_dry_run
        assert sent.state == before == b'{"version":4,"lineage":"theirs"}'
        assert [(item.name, item.value) for item in sent.rich_parameter_values] == [("size", "small")]
        assert sent.metadata.workspace_id == workspace["id"]
        assert sent.metadata.workspace_owner == "admin"
        assert sent.metadata.workspace_transition == pb.WorkspaceTransition.START
        for name in ("session_token", "oidc_access_token", "ssh_private_key"):
            assert not getattr(sent.metadata, f"workspace_owner_{name}")
        assert not sent.metadata.running_agent_auth_tokens
        after = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()
        assert after["latest_build"]["id"] == workspace["latest_build"]["id"]
        assert await world.ctx.db.read(system_builds.get_state, build_id) == before


async def test_unknown_changes_are_said() -> None:
    """A daemon of upstream plans without the state and reports resources only."""
    async with preview_world(answering(dry_run=lambda job: {"resources": [resource("box")]})) as (world, _):
        workspace = await new_workspace(world)
        done = await finished(world, workspace, await started(world, workspace, await other_version(world)))
        plan = done["plan"]
        assert (plan["known"], plan["counts"], plan["disk"], plan["resources"]) == (False, None, "unknown", [])
        assert plan["summary"][0].startswith("It is not known")


async def test_missing_values_are_named() -> None:
    async with preview_world() as (world, answers):
        workspace = await new_workspace(world)
        version = await other_version(world, "# needs-region\n")
        preview = await started(world, workspace, version)
        assert (preview["id"], preview["status"], preview["plan"]) == (None, "failed", None)
        assert "region" in preview["error"]
        (added,) = preview["changes"]["parameters"]
        assert (added["name"], added["change"], added["required"], added["value"]) == ("region", "added", True, None)
        body = {"template_version_id": version, "rich_parameter_values": [{"name": "region", "value": "eu"}]}
        answer = await world.post(path_of(workspace), body)
        assert answer.json()["changes"]["parameters"][0]["value"] == "eu"
        await finished(world, workspace, answer.json())
        values = {item.name: item.value for item in answers.seen[-1].template_dry_run.rich_parameter_values}
        assert values == {"size": "small", "region": "eu"}


async def test_failed_plan_has_its_error() -> None:
    """The job itself often knows only Terraform's exit status: the first errors of the log tell the reason."""
    async with preview_world() as (world, _):
        workspace = await new_workspace(world)
        version = await other_version(world)
        await without_daemon(world)
        preview = await started(world, workspace, version)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            logs = [line("Planning", "fine"), line("Planning", "Error: no such image", pb.ERROR)]
            await daemon.update(job, logs=logs + [line("Planning", "x" * 300, pb.ERROR)] * (MAX_ERROR_LINES + 5))
            await daemon.fail(job, "exit status 1")
        done = await finished(world, workspace, preview)
        first, *others = done["error"].split("\n")
        assert (done["status"], first, done["plan"]) == ("failed", "Error: no such image", None)
        assert len(others) < MAX_ERROR_LINES and len(done["error"]) == MAX_ERROR


async def test_session_tokens_are_masked() -> None:
    """A report of a careless daemon may contain a token of an earlier build."""
    tokens: list[str] = []

    def report(job: Any) -> dict[str, Any]:
        changes = planned(("docker_container.box", "update"))
        changes.resources[0].attributes.add(path="command", before=f'"login {tokens[0]}"', after='"login"')
        return {"planned": changes}

    async with preview_world(answering(dry_run=report)) as (world, answers):
        workspace = await new_workspace(world)
        tokens.append(answers.seen[-1].workspace_build.metadata.workspace_owner_session_token)
        await build(world, workspace["id"], "stop")
        workspace = await build(world, workspace["id"], "start")
        tokens[0] = answers.seen[-1].workspace_build.metadata.workspace_owner_session_token
        done = await finished(world, workspace, await started(world, workspace, await other_version(world)))
        (change,) = done["plan"]["resources"][0]["attributes"]
        assert tokens[0] not in str(done)
        assert change["before"].startswith('"login ') and change["after"] == '"login"'


async def test_reports_are_bounded() -> None:
    report = planned(*((f"t.{number}", "made-up" if number == 0 else "keep") for number in range(600)))
    report.resources[1].address = "a" * 10_000
    async with preview_world(answering(dry_run=lambda job: {"planned": report})) as (world, _):
        workspace = await new_workspace(world)
        done = await finished(world, workspace, await started(world, workspace, await other_version(world)))
        plan = done["plan"]
        assert (len(plan["resources"]), plan["omitted"]) == (500, 100)
        assert plan["resources"][0]["action"] == "unknown"
        assert len(plan["resources"][1]["address"]) == 400


async def test_rights_to_preview() -> None:
    async with preview_world() as (world, _):
        _, alice = await world.member("alice")
        others = {name: await world.member(name) for name in ("stranger", "user", "manager")}
        workspace = await new_workspace(world, "hers", token=alice)
        roles = {others["user"][0]: "use", others["manager"][0]: "admin"}
        shared = await world.patch(f"/api/v2/workspaces/{workspace['id']}/acl", {"user_roles": roles}, token=alice)
        assert shared.status_code == 204, shared.text
        version = await other_version(world)
        body = {"template_version_id": version}
        expected = {"stranger": 404, "user": 403, "manager": 201}
        for name, status in expected.items():
            answer = await world.post(path_of(workspace), body, token=others[name][1])
            assert answer.status_code == status, f"{name}: {answer.text}"
        preview = await started(world, workspace, version, token=alice)
        assert preview["changes"]["files"] is None  # only authors read a template's files
        await finished(world, workspace, preview, token=alice)
        for name, status in {"stranger": 404, "user": 403, "manager": 404}.items():
            answer = await world.get(f"{path_of(workspace)}/{preview['id']}", token=others[name][1])
            assert answer.status_code == status, name
            answer = await world.delete(f"{path_of(workspace)}/{preview['id']}", token=others[name][1])
            assert answer.status_code == status, name
        other = await new_workspace(world, "other", token=alice)
        assert (await world.get(f"{path_of(other)}/{preview['id']}", token=alice)).status_code == 404


async def test_use_of_template_is_required() -> None:
    async with preview_world() as (world, _):
        _, alice = await world.member("alice")
        workspace = await new_workspace(world, token=alice)
        version = await other_version(world)
        preview = await started(world, workspace, version, token=alice)
        await finished(world, workspace, preview, token=alice)
        template = world.extra["template"]["id"]
        everyone = {"group_perms": {world.organization_id: ""}}
        assert (await world.patch(f"/api/v2/templates/{template}/acl", everyone)).status_code == 200
        refused = await world.post(path_of(workspace), {"template_version_id": version}, token=alice)
        assert refused.status_code == 403, refused.text
        assert (await world.get(f"{path_of(workspace)}/{preview['id']}", token=alice)).status_code == 404


async def test_other_versions_are_not_found() -> None:
    async with preview_world() as (world, _):
        workspace = await new_workspace(world)
        foreign = (await new_version(world))["id"]
        for version in (foreign, "00000000-0000-4000-8000-000000000001"):
            answer = await world.post(path_of(workspace), {"template_version_id": version})
            assert answer.status_code == 404, answer.text


async def test_active_build_is_refused() -> None:
    async with preview_world() as (world, _):
        workspace = await new_workspace(world)
        version = await other_version(world)
        await without_daemon(world)
        await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": "stop"})
        answer = await world.post(path_of(workspace), {"template_version_id": version})
        assert answer.status_code == 409, answer.text


async def test_dry_run_routes_hide_previews() -> None:
    async with preview_world() as (world, _):
        workspace = await new_workspace(world)
        version = await other_version(world)
        await without_daemon(world)
        preview = await started(world, workspace, version)
        path = f"/api/v2/templateversions/{version}/dry-run/{preview['id']}"
        for part in ("", "/resources", "/logs", "/matched-provisioners"):
            assert (await world.get(path + part)).status_code == 404, part
        assert (await world.patch(f"{path}/cancel", {})).status_code == 200  # `coder provisioner jobs cancel`
        assert (await finished(world, workspace, preview))["status"] == "canceled"


async def test_builds_precede_previews() -> None:
    async with preview_world() as (world, _):
        first, second = await new_workspace(world, "first"), await new_workspace(world, "second")
        version = await other_version(world)
        await without_daemon(world)
        preview = await started(world, first, version)
        await world.post(f"/api/v2/workspaces/{second['id']}/builds", {"transition": "stop"})
        again = (await world.get(f"{path_of(first)}/{preview['id']}")).json()
        assert again["status"] == "pending"
        async with connected_daemon(world) as daemon:
            kinds = []
            for _ in range(2):
                job = await daemon.acquire()
                kinds.append(job.WhichOneof("type"))
                if kinds[-1] == "workspace_build":
                    await daemon.complete_build(job)
        assert kinds == ["workspace_build", "template_dry_run"]


async def test_two_previews_run_at_once() -> None:
    async with preview_world() as (world, answers):
        workspaces = [await new_workspace(world, f"ws{number}") for number in range(3)]
        version = await other_version(world)
        await without_daemon(world)
        previews = [await started(world, workspace, version) for workspace in workspaces]
        async with connected_daemon(world, name="one") as one, connected_daemon(world, name="two") as two:
            first, _second = await one.acquire(), await two.acquire()
            async with working_daemon(world, answers, name="three"):
                await build(world, workspaces[2]["id"], "stop")  # the third daemon works, and leaves the preview
                waiting = (await world.get(f"{path_of(workspaces[2])}/{previews[2]['id']}")).json()
                assert waiting["status"] == "pending"
                await one.complete_dry_run(first)  # its end wakes the third daemon
                await job_ended(world, previews[2]["id"])


async def test_slot_is_put_back_when_taken() -> None:
    """Daemons that acquire at the same moment do not see each other's preview."""
    async with preview_world() as (world, _):
        workspaces = [await new_workspace(world, f"ws{number}") for number in range(MAX_PREVIEWS + 2)]
        version = await other_version(world)
        await without_daemon(world)
        ids = [UUID((await started(world, workspace, version))["id"]) for workspace in workspaces]
        db, now = world.ctx.db, world.ctx.clock.now()
        for job_id in ids:
            await db.run(job_store.update_job, job_id, started_at=now, worker_id=job_id)
        await db.run(job_store.update_job, ids[1], canceled_at=now)
        held = [await db.run(hold_preview_slot, job_id, now) for job_id in ids]
        assert held == [False, False, True, True]
        rows = [await db.read(get_job, job_id) for job_id in ids]
        assert [row.status for row in rows if row] == ["pending", "canceled", "running", "running"]
        assert {row.priority for row in rows if row} == {PREVIEW_PRIORITY}


async def test_closed_page_cancels() -> None:
    async with preview_world() as (world, _):
        workspace = await new_workspace(world)
        version = await other_version(world)
        await without_daemon(world)
        preview = await started(world, workspace, version)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            assert not (await daemon.update(job)).canceled
            path = f"{path_of(workspace)}/{preview['id']}"
            assert (await world.delete(path)).status_code == 204
            assert (await world.delete(path)).status_code == 204
            assert (await daemon.update(job)).canceled
            await daemon.fail(job, "")
        assert (await finished(world, workspace, preview))["status"] == "canceled"


async def test_hung_plan_is_canceled() -> None:
    """An open page renews the lease: without a limit, a plan that hangs keeps one of the slots for hours."""
    clock = FakeClock()
    async with preview_world(clock=clock) as (world, _):
        workspace = await new_workspace(world)
        version = await other_version(world)
        await without_daemon(world)
        preview = await started(world, workspace, version)
        path = f"{path_of(workspace)}/{preview['id']}"
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            step = timedelta(seconds=60)
            for _ in range(MAX_DURATION // step):
                clock.advance(step.total_seconds())
                assert not (await daemon.update(job)).canceled
                assert (await world.get(path)).json()["status"] == "running"
            clock.advance(1)
            await daemon.update(job)
            assert (await daemon.update(job)).canceled
            await daemon.fail(job, "terraform plan: exit status 1")
        error = (await finished(world, workspace, preview))["error"]
        assert error == "The plan took longer than 15m0s and was canceled.\nterraform plan: exit status 1"


@pytest.mark.parametrize("is_running", [False, True])
async def test_preview_without_requests_is_canceled(is_running: bool) -> None:
    clock = FakeClock()
    async with preview_world(clock=clock) as (world, answers):
        workspace = await new_workspace(world)
        version = await other_version(world)
        await without_daemon(world)
        preview = await started(world, workspace, version)
        path = f"{path_of(workspace)}/{preview['id']}"
        clock.advance(LEASE.total_seconds() - 1)
        assert (await world.get(path)).json()["status"] == "pending"  # which renews the lease
        clock.advance(LEASE.total_seconds() - 1)
        async with connected_daemon(world) as daemon:
            if is_running:
                job = await daemon.acquire()
                assert not (await daemon.update(job)).canceled
                clock.advance(2)
                await daemon.update(job)
                assert (await daemon.update(job)).canceled
                await daemon.fail(job, "")
            else:
                clock.advance(2)
                async with working_daemon(world, answers, name="two"):
                    await job_ended(world, preview["id"])
        job_row = await world.ctx.db.read(get_job, UUID(preview["id"]))
        assert job_row is not None
        assert job_row.status == ("canceled" if is_running else "failed")
        assert is_running or "the page that asked for the preview was closed" in job_row.error
