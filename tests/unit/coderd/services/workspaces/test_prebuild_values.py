"""Prebuilt workspaces get their template's values, like workspaces that users request."""

from __future__ import annotations

from typing import Any

import trio

from coder.coderd.services.workspaces.prebuild_reconciliation import Reconciled, reconcile
from coder.rpc.proto import provisioner_pb2 as pb
from tests.kit.provisioners.scripted_provisioner import Answers, ended, new_version, upload, working_daemon
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspaces import parameters

CONDITIONAL = """
data "coder_parameter" "region" {
  name    = "region"
  default = "us"
}
data "coder_parameter" "zone" {
  count   = data.coder_parameter.region.value == "eu" ? 1 : 0
  name    = "zone"
  default = "${data.coder_parameter.region.value}-1"
}
data "coder_workspace_tags" "tags" {
  tags = { area = data.coder_parameter.region.value }
}
"""


def _import(_job: Any) -> dict[str, Any]:
    preset = pb.Preset(
        name="EU",
        parameters=[pb.PresetParameter(name="region", value="eu")],
        prebuild=pb.Prebuild(instances=1, expiration_policy=pb.ExpirationPolicy(ttl=3600)),
    )
    return {"rich_parameters": parameters(), "presets": [preset], "plan": b"{}"}


async def test_prebuild_values_are_rendered() -> None:
    """A parameter exists only with the preset's other values, and tags depend on them."""
    answers = Answers(import_=_import)
    async with running_coderd(first_user=True) as world, working_daemon(world, answers, tags={"area": "us"}):
        file_id = await upload(world, {"main.tf": CONDITIONAL})
        version = await new_version(world, file_id=file_id)
        with trio.fail_after(60):
            await ended(world, f"/api/v2/templateversions/{version['id']}")
        body = {"name": "conditional", "template_version_id": version["id"]}
        created = await world.post(f"/api/v2/organizations/{world.organization_id}/templates", body)
        assert created.status_code == 201, created.text
        assert await reconcile(world.ctx) == Reconciled(created=1)
        jobs = (await world.get("/api/v2/organizations/default/provisionerjobs")).json()
        (job,) = [item for item in jobs if item["type"] == "workspace_build"]
        build_id = job["input"]["workspace_build_id"]
        values = (await world.get(f"/api/v2/workspacebuilds/{build_id}/parameters")).json()
    assert job["tags"]["area"] == "eu"
    assert {item["name"]: item["value"] for item in values} == {"region": "eu", "zone": "eu-1"}
