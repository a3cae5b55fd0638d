"""Messages that describe builds to a daemon, and how its results are stored."""

from __future__ import annotations

import json
from typing import Any

import trio
from google.protobuf.timestamp_pb2 import Timestamp

from coder.base.secret import Secret
from coder.domain.provisioning.jobs import MAX_ERROR
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.rpc.proto import provisioner_pb2, provisionerd_pb2
from tests.kit.provisioners.scripted_provisioner import (
    Answers,
    FakeDaemon,
    agent,
    connected_daemon,
    ended,
    new_template,
    resource,
    working_daemon,
)
from tests.kit.server.server_in_process import World, running_coderd

pb = provisioner_pb2


def import_answer(job: Any) -> dict[str, Any]:
    size = pb.RichParameter(name="size", type="string", default_value="small", mutable=True, form_type=pb.INPUT)
    return {"rich_parameters": [size], "start_resources": [resource("box", agents=[agent()])]}


async def imported_template(world: World) -> Any:
    """Return an imported template."""
    async with working_daemon(world, Answers(import_=import_answer)):
        template = await new_template(world, "tpl")
        await ended(world, f"/api/v2/templateversions/{template['active_version_id']}")
    return template


async def create(world: World, template: Any, size: str = "large") -> Any:
    body = {
        "template_id": template["id"],
        "name": "dev",
        "rich_parameter_values": [{"name": "size", "value": size}],
    }
    answer = await world.post("/api/v2/users/me/workspaces", body)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def build(world: World, workspace: Any, transition: str, **rest: Any) -> Any:
    answer = await world.post(f"/api/v2/workspaces/{workspace['id']}/builds", {"transition": transition, **rest})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_build_metadata() -> None:
    async with running_coderd(first_user=True) as world:
        template = await imported_template(world)
        workspace = await create(world, template)
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            assert job.user_name == "admin"
            work = job.workspace_build
            assert (work.workspace_name, work.state) == ("dev", b"")
            assert [(item.name, item.value) for item in work.rich_parameter_values] == [("size", "large")]
            assert not work.previous_parameter_values
            metadata = work.metadata
            assert metadata.coder_url == world.ctx.access_url
            assert metadata.workspace_transition == pb.START
            assert (metadata.workspace_id, metadata.workspace_owner_id) == (workspace["id"], world.user_id)
            assert (metadata.workspace_owner, metadata.workspace_owner_email) == ("admin", "a@b.c")
            assert (metadata.template_name, metadata.template_id) == ("tpl", template["id"])
            assert metadata.template_version_id == template["active_version_id"]
            assert list(metadata.workspace_owner_groups) == ["Everyone"]
            assert metadata.workspace_owner_ssh_public_key.startswith("ssh-ed25519 ")
            assert "PRIVATE KEY" in metadata.workspace_owner_ssh_private_key
            roles = {(role.name, bool(role.org_id)) for role in metadata.workspace_owner_rbac_roles}
            assert {("owner", False), ("member", False), ("organization-member", True)} <= roles
            assert metadata.task_id == "00000000-0000-0000-0000-000000000000"
            me = await world.get("/api/v2/users/me", token=metadata.workspace_owner_session_token)
            assert me.json()["username"] == "admin"
            await daemon.complete_build(job, state=b"state 1", resources=[resource("box", agents=[agent()])])
            await _check_stop_build(world, daemon, workspace, metadata.workspace_owner_session_token)


async def _check_stop_build(world: World, daemon: FakeDaemon, workspace: Any, old_token: str) -> None:
    await build(world, workspace, "stop")
    job = await daemon.acquire()
    work = job.workspace_build
    assert work.state == b"state 1"
    assert work.metadata.workspace_transition == pb.STOP
    assert work.metadata.workspace_owner_session_token == ""
    assert [(item.name, item.value) for item in work.previous_parameter_values] == [("size", "large")]
    assert (await world.get("/api/v2/users/me", token=old_token)).status_code == 401
    await daemon.complete_build(job, state=b"state 2")


async def test_failed_build_keeps_state_and_timings() -> None:
    async with running_coderd(first_user=True) as world:
        workspace = await create(world, await imported_template(world))
        start, end = Timestamp(seconds=1_795_232_665), Timestamp(seconds=1_795_232_667)
        took = pb.Timing(start=start, end=end, action="create", source="terraform", resource="box", stage="apply")
        cut_off = pb.Timing(start=start, stage="apply", resource="box2")
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            failed = provisionerd_pb2.FailedJob.WorkspaceBuild(state=b"partial", timings=[took, cut_off])
            await daemon.fail(job, "terraform apply: exit status 1", workspace_build=failed)
            latest_build = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]
            assert (latest_build["status"], latest_build["job"]["error"]) == (
                "failed",
                "terraform apply: exit status 1",
            )
            timings = (await world.get(f"/api/v2/workspacebuilds/{latest_build['id']}/timings")).json()
            assert [(item["stage"], item["resource"]) for item in timings["provisioner_timings"]] == [("apply", "box")]
            await build(world, workspace, "delete")
            job = await daemon.acquire()
            assert job.workspace_build.state == b"partial"
            await daemon.complete_build(job)
        response = await world.get(f"/api/v2/workspaces/{workspace['id']}")
        assert response.status_code == 410


async def test_long_failure_is_cut() -> None:
    """The error is part of every list of workspaces."""
    async with running_coderd(first_user=True) as world:
        workspace = await create(world, await imported_template(world))
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            failed = provisionerd_pb2.FailedJob.WorkspaceBuild()
            await daemon.fail(job, "why " * 250_000, workspace_build=failed)
            job_shape = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]["job"]
        assert job_shape["status"] == "failed" and len(job_shape["error"]) < MAX_ERROR + 50


async def test_unstorable_result_keeps_state() -> None:
    async with running_coderd(first_user=True) as world:
        workspace = await create(world, await imported_template(world))
        async with connected_daemon(world) as daemon:
            job = await daemon.acquire()
            invalid = resource("box", agents=[agent("main", token="no uuid")])
            await daemon.complete_build(job, state=b"made", resources=[invalid])
            latest_build = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()["latest_build"]
            assert latest_build["status"] == "failed"
            assert "it must be a UUID" in latest_build["job"]["error"]
            await build(world, workspace, "delete")
            job = await daemon.acquire()
            assert job.workspace_build.state == b"made"


async def test_watchers_notified_of_every_step() -> None:
    async with running_coderd(first_user=True) as world:
        workspace = await create(world, await imported_template(world))
        policy = DialPolicy(world.url, token=Secret(world.token))
        statuses: list[str] = []
        async with (
            await connect_websocket(policy, f"/api/v2/workspaces/{workspace['id']}/watch-ws") as websocket,
            connected_daemon(world) as daemon,
        ):

            async def wait_for(status: str) -> None:
                with trio.fail_after(60):
                    while status not in statuses:
                        event = json.loads(await websocket.receive_message() or "")
                        if event["type"] == "data":
                            statuses.append(event["data"]["latest_build"]["status"])

            await wait_for("pending")
            job = await daemon.acquire()
            await wait_for("starting")
            await daemon.complete_build(job, resources=[resource("box", agents=[agent()])])
            await wait_for("running")
