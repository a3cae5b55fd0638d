"""Stored results of builds: foreign ids are replaced, and an escaped zero byte is no zero byte."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from coder.coderd.services.provisioning import resources
from coder.coderd.store.agents import agent_apps as app_store
from coder.coderd.store.workspaces import system_builds
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import agent, connected_daemon, ended, new_version, resource
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import new_workspace, workspace_world


async def test_foreign_app_id_is_replaced() -> None:
    """A state may be copied between workspaces: the copy's task must not show the original's application."""
    reported = str(uuid4())

    def answer(job: Any) -> dict[str, Any]:
        if job.workspace_build.metadata.workspace_transition != pb.START:
            return {"state": b"{}"}
        app = pb.App(id=reported, slug="chat", url="http://localhost:1")
        parts = [resource("box", agents=[agent(token=str(uuid4()), apps=[app])])]
        return {"state": b"{}", "resources": parts, "ai_tasks": [pb.AITask(id=str(uuid4()), app_id=reported)]}

    async with workspace_world() as (world, answers):
        answers.build = answer
        app_ids = []
        for name in ("one", "two"):
            workspace = UUID((await new_workspace(world, name))["id"])
            build = await world.ctx.db.read(system_builds.get_latest_build, workspace)
            assert build is not None and build.ai_task_app_id is not None
            owners = await world.ctx.db.read(app_store.find_app_workspaces, [build.ai_task_app_id])
            assert owners == {build.ai_task_app_id: workspace}
            app_ids.append(str(build.ai_task_app_id))
        assert app_ids[0] == reported != app_ids[1]


@pytest.mark.parametrize(
    ("name", "slug", "error"),
    [
        ("", "web", "agent name '' does not match"),
        ("a.b", "web", "agent name 'a.b' does not match"),
        ("a--b", "web", "agent name 'a--b' does not match"),
        ("a_b", "web", "agent name 'a_b' does not match"),
        ("main", "", "app slug '' does not match"),
        ("main", "a--b", "app slug 'a--b' does not match"),
        ("main", "Web", "app slug 'Web' does not match"),
        ("main", "../x", "app slug '../x' does not match"),
    ],
)
async def test_invalid_names_fail_job(name: str, slug: str, error: str) -> None:
    """The built-in daemon checks earlier, but users may run daemons for their own workspaces."""
    async with running_coderd(first_user=True) as world:
        version = await new_version(world)
        async with connected_daemon(world) as daemon:
            app = pb.App(slug=slug, url="http://localhost:1")
            resources = [resource("box", agents=[agent(name, apps=[app])])]
            await daemon.complete_import(await daemon.acquire(), start_resources=resources)
        job = (await ended(world, f"/api/v2/templateversions/{version['id']}"))["job"]
        assert job["status"] == "failed" and error in job["error"]


@pytest.mark.parametrize("value", ["\\u0000", r"^[^\u0000]*$", {"a": "\\u0000"}, ["\\u0000"], 0, None])
def test_escaped_zero_byte_allowed(value: Any) -> None:
    assert not resources._has_zero_byte(value)


@pytest.mark.parametrize("value", ["a\x00", {"a\x00": 1}, {"a": ["b", {"c": "\x00"}]}, [["\x00"]]])
def test_zero_byte_rejected(value: Any) -> None:
    assert resources._has_zero_byte(value)
