"""A preview from end to end, with a real Terraform: about ten seconds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coder.cli.provisioning.builtin_daemons import builtin_daemons
from coder.coderd.store.workspaces import system_builds
from coder.provisionerd.redact import REPLACEMENT
from tests.kit.programs.command_line import run_cli
from tests.kit.provisioners.scripted_provisioner import ended, new_version, upload
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import settled

pytestmark = pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed")

TEMPLATE = """
terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
data "coder_parameter" "size" {
  name    = "size"
  default = "SIZE"
  mutable = true
}
resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}
resource "terraform_data" "home" {
  input = "kept"
}
resource "terraform_data" "image" {
  triggers_replace = "IMAGE"
}
resource "terraform_data" "size" {
  input = data.coder_parameter.size.value
}
resource "terraform_data" "password" {
  input = sensitive("PASSWORD")
}
resource "terraform_data" "box" {
  count = data.coder_workspace.me.start_count
  input = data.coder_workspace_owner.me.session_token
}
resource "terraform_data" "EXTRA" {}
"""
FIRST = {"SIZE": "small", "IMAGE": "a:1", "PASSWORD": "first-secret", "EXTRA": "old"}
SECOND = {"SIZE": "large", "IMAGE": "a:2", "PASSWORD": "second-secret", "EXTRA": "new"}


async def version_of(world: World, words: dict[str, str], **rest: Any) -> str:
    text = TEMPLATE
    for name, value in words.items():
        text = text.replace(name, value)
    file_id = await upload(world, {"main.tf": text})
    version = await new_version(world, file_id=file_id, provisioner="terraform", **rest)
    imported = await ended(world, f"/api/v2/templateversions/{version['id']}")
    assert imported["job"]["status"] == "succeeded", imported["job"]
    return str(version["id"])


async def test_plan_of_real_workspace(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"provisioner": builtin_daemons, "cache_dir": tmp_path / "cache"}
    async with running_coderd(first_user=True, **settings) as world:
        body = {"name": "tpl", "template_version_id": await version_of(world, FIRST)}
        template = (await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)).json()
        wanted = {"name": "ws", "template_id": template["id"]}
        created = (await world.post("/api/v2/users/me/workspaces", wanted)).json()
        workspace = await settled(world, created["id"])
        assert workspace["latest_build"]["status"] == "running", workspace["latest_build"]["job"]
        build_id = UUID(workspace["latest_build"]["id"])
        state = await world.ctx.db.read(system_builds.get_state, build_id)
        boxes = [item for item in json.loads(state)["resources"] if item["name"] == "box"]
        token = boxes[0]["instances"][0]["attributes"]["input"]["value"]
        version = await version_of(world, SECOND, template_id=template["id"])
        made_active = await world.patch(f"/api/v2/templates/{template['id']}/versions", {"id": version})
        assert made_active.status_code == 200, made_active.text

        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token}
        shown = await run_cli(["update", "ws", "--preview", "--output", "json"], home=tmp_path, env=env)
        assert shown.code == 0, shown
        preview = json.loads(shown.stdout)
        plan = preview["plan"]
        assert {item["address"]: item["action"] for item in plan["resources"]} == {
            "terraform_data.box[0]": "restart",
            "terraform_data.home": "keep",
            "terraform_data.image": "replace",
            "terraform_data.new": "create",
            "terraform_data.old": "delete",
            "terraform_data.password": "update",
            "terraform_data.size": "keep",  # the workspace has its own value
        }
        attributes = {
            (item["name"], change["path"]): (change["before"], change["after"], change["forces_replacement"])
            for item in plan["resources"]
            for change in item["attributes"]
        }
        assert attributes["image", "triggers_replace"] == ('"a:1"', '"a:2"', True)
        assert attributes["password", "input"] == (REPLACEMENT, REPLACEMENT, False)
        assert token and token not in shown.stdout
        assert [(item["name"], item["restarts"]) for item in plan["agents"]] == [("main", True)]
        (size,) = preview["changes"]["parameters"]
        assert (size["name"], size["fields"], size["value"]) == ("size", ["default_value"], "small")

        text = await run_cli(["update", "ws", "--preview"], home=tmp_path, env=env)
        assert "  terraform_data.old: destroyed\n" in text.stdout
        assert '-  triggers_replace = "a:1"' in text.stdout  # the files' diff
        after = (await world.get(f"/api/v2/workspaces/{workspace['id']}")).json()
        assert after["latest_build"]["id"] == str(build_id)
        assert await world.ctx.db.read(system_builds.get_state, build_id) == state
