"""Previews of a template's workspaces: the sample, the rights, and the rest that is only counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from coder.coderd.services.workspaces.prebuild_reconciliation import reconcile
from coder.coderd.services.workspaces.previews import new_previews
from coder.coderd.services.workspaces.previews.new_previews import MAX_SAMPLE, sample
from coder.coderd.store.workspaces.outdated import list_outdated
from tests.kit.agents.scripted_agent import eventually
from tests.kit.provisioners.scripted_provisioner import job_ended
from tests.kit.server.previews import other_version, preview_world
from tests.kit.server.workspaces import build, new_workspace, prebuilt, world_with_preset


async def test_template_samples_workspaces() -> None:
    async with preview_world() as (world, _):
        for number in range(3):
            await new_workspace(world, f"ws{number}")
        _, alice = await world.member("alice")
        hers = await new_workspace(world, "hers", token=alice)
        version = await other_version(world, "# needs-region\n")
        template = world.extra["template"]["id"]
        path = f"/api/v2/templates/{template}/update-preview"
        body = {"template_version_id": version}
        assert (await world.post(path, body, token=alice)).status_code == 403
        answer = await world.post(path, body)
        assert answer.status_code == 201, answer.text
        assert answer.json()["id"] is None  # every workspace lacks a value
        assert {item["status"] for item in answer.json()["previews"]} == {"failed"}
        assert len(answer.json()["previews"]) == 4 and answer.json()["not_previewed"] == 0
        version = await other_version(world, "# three\n", name="three")
        await build(world, hers["id"], "start", template_version_id=version)
        preview = (await world.post(path, {"template_version_id": version})).json()
        names = {item["workspace_name"] for item in preview["previews"]}
        assert names == {"ws0", "ws1", "ws2"}  # the fourth has that version
        assert preview["changes"]["files"][0]["path"] == "main.tf"
        for item in preview["previews"]:
            await job_ended(world, item["id"])
        done = (await world.get(f"{path}/{preview['id']}")).json()
        assert {item["plan"]["disk"] for item in done["previews"]} == {"kept"}
        assert (await world.get(f"{path}/{preview['id']}", token=alice)).status_code == 403
        _, author = await world.member("author", ["template-admin"])
        assert (await world.get(f"{path}/{preview['id']}", token=author)).status_code == 404


async def test_template_counts_the_rest() -> None:
    """An author without the right to update a workspace does not preview it."""
    async with preview_world() as (world, _):
        for number in range(2):
            await new_workspace(world, f"ws{number}")
        version = await other_version(world)
        user_id, author = await world.member("author")
        template = world.extra["template"]["id"]
        acl = await world.patch(f"/api/v2/templates/{template}/acl", {"user_perms": {user_id: "admin"}})
        assert acl.status_code == 200, acl.text
        own = await new_workspace(world, "own", token=author, template_version_id=None)
        path = f"/api/v2/templates/{template}/update-preview"
        answer = await world.post(path, {"template_version_id": version}, token=author)
        assert answer.status_code == 201, answer.text
        preview = answer.json()
        assert [item["workspace_id"] for item in preview["previews"]] == [own["id"]]
        assert preview["not_previewed"] == 2
        await job_ended(world, preview["id"])
        assert (await world.delete(f"{path}/{preview['id']}", token=author)).status_code == 204


async def test_prebuilt_workspaces_are_no_updates() -> None:
    """Another version replaces an unclaimed workspace instead of updating it."""
    async with world_with_preset() as (world, _, _preset):
        await reconcile(world.ctx)
        await eventually(lambda: prebuilt(world))
        version = await other_version(world)
        path = f"/api/v2/templates/{world.extra['template']['id']}/update-preview"
        answer = await world.post(path, {"template_version_id": version})
        assert answer.status_code == 201, answer.text
        assert (answer.json()["previews"], answer.json()["not_previewed"]) == ([], 0)


async def test_sampled_workspace_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with preview_world() as (world, _):
        workspace = await new_workspace(world)
        version = await other_version(world)

        async def with_gone(tx: Any, template_id: UUID, version_id: UUID) -> list[Any]:
            rows = await list_outdated(tx, template_id, version_id)
            return [replace(rows[0], id=UUID(int=7)), *rows]

        monkeypatch.setattr(new_previews, "list_outdated", with_gone)
        path = f"/api/v2/templates/{world.extra['template']['id']}/update-preview"
        preview = (await world.post(path, {"template_version_id": version})).json()
        assert [item["workspace_id"] for item in preview["previews"]] == [workspace["id"]]
        assert preview["not_previewed"] == 1
        await job_ended(world, preview["id"])
        assert (await world.get(f"{path}/{preview['id']}")).json()["not_previewed"] == 1


def test_sample_is_bounded() -> None:
    rows: Any = list(range(305))
    chosen: Any = sample(rows)
    assert len(set(chosen)) == MAX_SAMPLE and chosen[0] == 0 and chosen[-1] > 280
    assert sample(rows[:3]) == rows[:3]
    assert sample([]) == []
