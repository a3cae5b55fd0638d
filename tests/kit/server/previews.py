"""A server with previews of updates: a template of the classic flow, and a scripted plan."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.provisioners.scripted_provisioner import Answers, agent, ended, job_ended, new_version, resource, upload
from tests.kit.server.server_in_process import World
from tests.kit.server.workspaces import workspace_world


def planned(*changes: tuple[str, str]) -> pd.PlannedChanges:
    """Return a report of (address, action)."""
    report = pd.PlannedChanges()
    for address, action in changes:
        kind, _, name = address.partition(".")
        report.resources.add(address=address, type=kind, name=name, action=action)
    return report


def _import(job: Any) -> dict[str, Any]:
    text = job.template_source_archive.decode("latin-1")
    parameter = pb.RichParameter(name="size", type="string", default_value="small", mutable=True, form_type=pb.INPUT)
    found = {
        "start_resources": [resource("box", "docker_container", agents=[agent()]), resource("home", "docker_volume")],
        "stop_resources": [resource("home", "docker_volume")],
        "rich_parameters": [parameter],
    }
    if "needs-region" in text:
        region = pb.RichParameter(name="region", type="string", required=True, mutable=True, form_type=pb.INPUT)
        found["rich_parameters"] = [parameter, region]
    return found


def _build(job: Any) -> dict[str, Any]:
    return {"state": b'{"version":4,"lineage":"theirs"}', "resources": []}


def _dry_run(job: Any) -> dict[str, Any]:
    changes = (("docker_volume.home", "keep"), ("docker_container.box", "replace"), ("coder_agent.main", "keep"))
    return {"planned": planned(*changes)}


def answering(**rest: Any) -> Answers:
    return Answers(**{"import_": _import, "build": _build, "dry_run": _dry_run, **rest})


@contextlib.asynccontextmanager
async def preview_world(answers: Answers | None = None, **settings: Any) -> AsyncIterator[tuple[World, Answers]]:
    """A template of the classic flow, so that values come from the import."""
    async with workspace_world(answers or answering(), **settings) as (world, chosen):
        path = f"/api/v2/templates/{world.extra['template']['id']}"
        changed = await world.patch(path, {"use_classic_parameter_flow": True})
        assert changed.status_code == 200, changed.text
        yield world, chosen


async def other_version(world: World, text: str = "# two\n", **rest: Any) -> str:
    """Return the id of another version of the template, imported."""
    file_id = await upload(world, {"main.tf": text})
    version = await new_version(world, template_id=world.extra["template"]["id"], file_id=file_id, **rest)
    imported = await ended(world, f"/api/v2/templateversions/{version['id']}")
    assert imported["job"]["status"] == "succeeded", imported
    return str(version["id"])


def path_of(workspace: Any) -> str:
    return f"/api/v2/workspaces/{workspace['id']}/update-preview"


async def started(world: World, workspace: Any, version: str, **rest: Any) -> Any:
    answer = await world.post(path_of(workspace), {"template_version_id": version}, **rest)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def finished(world: World, workspace: Any, preview: Any, **rest: Any) -> Any:
    await job_ended(world, preview["id"])
    answer = await world.get(f"{path_of(workspace)}/{preview['id']}", **rest)
    assert answer.status_code == 200, answer.text
    return answer.json()
