"""coder_workspace_tags end to end: a parameter's value selects the daemon, which runs real Terraform."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.base.secret import Secret
from coder.net.dial import DialPolicy
from coder.net.websocket import connect_websocket
from coder.provisionerd.config import DaemonConfig, TerraformConfig
from coder.provisionerd.daemon import run_daemon
from coder.provisionerd.executors.terraform import TerraformExecutor
from coder.rpc.session import Session, open_session
from tests.kit.provisioners.scripted_provisioner import ended, new_version, serve_path, upload
from tests.kit.server.server_in_process import World, running_coderd
from tests.kit.server.workspaces import settled

pytestmark = pytest.mark.skipif(not shutil.which("terraform"), reason="terraform is not installed")

TEMPLATE = """
terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
  }
}
data "coder_parameter" "region" {
  name    = "region"
  default = "eu"
  option {
    name  = "Europe"
    value = "eu"
  }
  option {
    name  = "America"
    value = "us"
  }
  option {
    name  = "Mars"
    value = "mars"
  }
}
locals {
  zone = { eu = "frankfurt", us = "ohio", mars = "olympus" }
}
data "coder_workspace_tags" "place" {
  tags = {
    zone = local.zone[data.coder_parameter.region.value]
  }
}
resource "terraform_data" "place" {
  input = local.zone[data.coder_parameter.region.value]
}
"""


@contextlib.asynccontextmanager
async def _terraform_daemon(world: World, folder: Path, name: str, tags: dict[str, str]) -> AsyncIterator[None]:
    """Run a daemon as `provisioner start` does, over its real link."""

    @contextlib.asynccontextmanager
    async def connect() -> AsyncIterator[Session]:
        policy = DialPolicy(world.url, token=Secret(world.token))
        socket = await connect_websocket(policy, serve_path(name=name, tags=tags))
        async with open_session(socket, "client") as session:
            yield session

    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    executor = TerraformExecutor(TerraformConfig(cache_dir=folder / "cache", environment=environment))
    config = DaemonConfig(name=name, work_dir=folder / name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(run_daemon, connect, config, {"terraform": executor}))
        yield
        nursery.cancel_scope.cancel()


async def test_parameter_selects_daemon(tmp_path: Path) -> None:
    async with (
        running_coderd(first_user=True) as world,
        _terraform_daemon(world, tmp_path, "one", {"zone": "frankfurt"}),
        _terraform_daemon(world, tmp_path, "two", {"zone": "ohio"}),
    ):
        version = await new_version(world, file_id=await upload(world, {"main.tf": TEMPLATE}), provisioner="terraform")
        assert version["job"]["tags"]["zone"] == "frankfurt"
        imported = await ended(world, f"/api/v2/templateversions/{version['id']}")
        daemons = await world.get(f"/api/v2/organizations/{world.organization_id}/provisionerdaemons")
        names = {daemon["id"]: daemon["name"] for daemon in daemons.json()}
        assert (imported["job"]["status"], names[imported["job"]["worker_id"]]) == ("succeeded", "one"), imported["job"]
        body = {"name": "placed", "template_version_id": version["id"]}
        template = (await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)).json()

        async def create(name: str, region: str) -> Any:
            wanted = {"name": name, "template_id": template["id"]}
            values = [{"name": "region", "value": region}] if region else []
            answer = await world.post("/api/v2/users/me/workspaces", {**wanted, "rich_parameter_values": values})
            assert answer.status_code == 201, answer.text
            return answer.json()

        async def job_of(workspace: dict[str, Any]) -> Any:
            return (await settled(world, workspace["id"]))["latest_build"]["job"]

        default, chosen = await create("default", ""), await create("chosen", "us")
        first, second = await job_of(default), await job_of(chosen)
        assert (first["status"], names[first["worker_id"]]) == ("succeeded", "one"), first
        assert (second["status"], names[second["worker_id"]]) == ("succeeded", "two"), second
        assert (first["tags"]["zone"], second["tags"]["zone"]) == ("frankfurt", "ohio")
        nowhere = (await create("nowhere", "mars"))["latest_build"]
        assert nowhere["matched_provisioners"]["count"] == 0
        assert nowhere["job"]["tags"]["zone"] == "olympus"
        path = f"/api/v2/organizations/{world.organization_id}/provisionerjobs/{nowhere['job']['id']}/why"
        why = (await world.get(path)).json()
        assert {(daemon["daemon_name"], daemon["code"]) for daemon in why["daemons"]} == {
            ("one", "wrong_tag"),
            ("two", "wrong_tag"),
        }
