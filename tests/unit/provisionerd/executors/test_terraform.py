"""Jobs with a real terraform: import, start, stop, delete, failures and cancellation."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from coder.provisionerd.config import DaemonConfig, TerraformConfig
from coder.provisionerd.executors.terraform import TerraformExecutor
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.proto.provisionerd_pb2 import FailedJob
from tests.kit.paths import ROOT
from tests.kit.provisioners.scripted_job_server import FakeServer, running_daemon, tar_of

HEAD = 'terraform {\n  required_providers {\n    coder = { source = "coder/coder" }\n  }\n}\n'
TEMPLATE = (
    HEAD
    + """
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
data "coder_parameter" "size" {
  name    = "size"
  default = "small"
  mutable = true
}
variable "region" {
  type    = string
  default = "us"
}
variable "names" {
  type    = list(string)
  default = []
}
resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
  env  = { REGION = var.region, NAMES = join(",", var.names) }
}
resource "coder_app" "web" {
  agent_id = coder_agent.main.id
  slug     = "web"
  url      = "http://localhost:1"
}
resource "terraform_data" "box" {
  count = data.coder_workspace.me.start_count
  input = coder_agent.main.token
  provisioner "local-exec" {
    command = "echo working for ${data.coder_workspace_owner.me.name}"
  }
}
resource "coder_metadata" "box" {
  count       = data.coder_workspace.me.start_count
  resource_id = terraform_data.box[0].id
  daily_cost  = 3
}
"""
)


def running(command: str, name: str = "x") -> str:
    """Return a template whose only resource runs a command at its creation."""
    body = f'  provisioner "local-exec" {{\n    command = {json.dumps(command)}\n  }}\n'
    return f'resource "terraform_data" "{name}" {{\n{body}}}\n'


class World:
    def __init__(self, tmp_path: Path, **terraform: Any) -> None:
        self.server = FakeServer()
        self.config = DaemonConfig(name="d", work_dir=tmp_path / "work")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CODER_SECRET": "leak",
            **terraform.pop("env", {}),
        }
        self.executor = TerraformExecutor(
            TerraformConfig(cache_dir=tmp_path / "cache", environment=environment, **terraform)
        )

    async def run(self, job: pd.AcquiredJob) -> Any:
        self.server.post(job)
        async with running_daemon(self.server, self.config, {"terraform": self.executor}):
            return await self.server.wait_ended(len(self.server.ended) + 1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def importing(template: str | dict[str, str]) -> pd.AcquiredJob:
    files = {"main.tf": template} if isinstance(template, str) else template
    return pd.AcquiredJob(
        job_id="j",
        provisioner="terraform",
        template_source_archive=tar_of(files),
        template_import=pd.AcquiredJob.TemplateImport(metadata=pb.Metadata(coder_url="http://c.test")),
    )


def building(
    template: str | dict[str, str], transition: str = "START", state: bytes = b"", **fields: Any
) -> pd.AcquiredJob:
    files = {"main.tf": template} if isinstance(template, str) else template
    metadata = pb.Metadata(
        coder_url="http://c.test",
        workspace_transition=pb.WorkspaceTransition.Value(transition),
        workspace_name="w",
        workspace_owner="ada",
        workspace_id="aaaaaaaa-0000-4000-8000-000000000001",
    )
    work = pd.AcquiredJob.WorkspaceBuild(metadata=metadata, state=state, **fields)
    return pd.AcquiredJob(
        job_id="j", provisioner="terraform", template_source_archive=tar_of(files), workspace_build=work
    )


async def test_import(world: World) -> None:
    world.server.variable_values = [
        pb.VariableValue(name="region", value='e"u'),
        pb.VariableValue(name="names", value='["a", "b"]'),
    ]
    done = await world.run(importing({"main.tf": TEMPLATE, "README.md": "# Hi"}))
    work = done.template_import
    assert [(one.type, [agent.name for agent in one.agents]) for one in work.start_resources] == [
        ("terraform_data", ["main"])
    ]
    agent = work.start_resources[0].agents[0]
    assert [app.slug for app in agent.apps] == ["web"]
    assert dict(agent.env) == {"REGION": 'e"u', "NAMES": "a,b"}
    assert work.start_resources[0].daily_cost == 3
    assert list(work.stop_resources) == []
    assert [one.name for one in work.rich_parameters] == ["size"]
    assert json.loads(work.plan)["terraform_version"]
    update = next(one for one in world.server.updates if one.template_variables)
    assert update.readme == b"# Hi"
    assert [one.name for one in update.template_variables] == ["region", "names"]
    lines = world.server.outputs("Detecting persistent resources")
    assert "terraform_data.box[0]: Plan to create" in lines
    assert list(world.config.work_dir.iterdir()) == []


async def test_workspace_lifecycle(world: World) -> None:
    started = (await world.run(building(TEMPLATE))).workspace_build
    assert world.server.quota_asked == [3]
    [box] = started.resources
    assert (box.type, box.daily_cost, box.agents[0].name) == ("terraform_data", 3, "main")
    assert box.agents[0].token
    assert "terraform_data.box[0]: (local-exec): working for ada" in world.server.outputs("Starting workspace")
    spans = {(one.stage, one.resource, one.action) for one in started.timings}
    assert {("apply", "coder_stage_apply", "terraform"), ("apply", "terraform_data.box[0]", "create")} <= spans
    stopped = (await world.run(building(TEMPLATE, "STOP", started.state))).workspace_build
    assert list(stopped.resources) == []
    assert world.server.quota_asked == [3]
    again = (await world.run(building(TEMPLATE, "START", stopped.state))).workspace_build
    assert again.resources[0].agents[0].id == box.agents[0].id
    assert again.resources[0].agents[0].token != box.agents[0].token
    deleted = (await world.run(building(TEMPLATE, "DESTROY", again.state))).workspace_build
    assert list(deleted.resources) == []
    assert json.loads(deleted.state)["resources"] == []


async def test_delete_without_a_state(world: World) -> None:
    done = await world.run(building(TEMPLATE, "DESTROY"))
    assert isinstance(done, pd.CompletedJob)
    expected = "The terraform state does not exist, there is nothing to do"
    assert world.server.outputs("Destroying workspace") == [expected]


async def test_plan_error(world: World) -> None:
    failed = await world.run(importing('resource "terraform_data" "x" {\n  input = nosuch.thing\n}\n'))
    assert isinstance(failed, FailedJob) and failed.error == (
        "template import provision for start: plan during template import provision error: "
        "terraform plan: exit status 1"
    )
    errors = [output for _, level, _, output in world.server.lines() if level == pb.LogLevel.ERROR]
    assert errors == [
        "Error: Reference to undeclared resource",
        'on main.tf line 2, in resource "terraform_data" "x":',
        "  2:   input = nosuch.thing",
        "",
        'A managed resource "nosuch" "thing" has not been declared in the root module.',
    ]


async def test_template_that_is_not_hcl(world: World) -> None:
    failed = await world.run(importing("this is {{ no template"))
    assert isinstance(failed, FailedJob) and failed.error.startswith(
        "template import init error: initialize terraform: exit status 1"
    )
    assert any("main.tf line 1" in output for output in world.server.outputs("Initializing Terraform Directory"))


async def test_local_modules_are_listed(world: World) -> None:
    files = {
        "main.tf": 'module "inner" {\n  source = "./inner"\n}\n',
        "inner/main.tf": 'resource "terraform_data" "x" {}\n',
    }
    done = await world.run(importing(files))
    assert [(one.key, one.source, one.dir) for one in done.template_import.start_modules] == [
        ("inner", "./inner", "inner")
    ]
    assert [one.module_path for one in done.template_import.start_resources] == ["module.inner"]
    assert done.template_import.module_files == b""


async def test_failed_apply_keeps_its_state(world: World) -> None:
    template = (
        'resource "terraform_data" "good" {}\n'
        'resource "terraform_data" "bad" {\n  depends_on = [terraform_data.good]\n'
        '  provisioner "local-exec" {\n    command = "exit 3"\n  }\n}\n'
    )
    failed = await world.run(building(template))
    assert isinstance(failed, FailedJob) and failed.error == "terraform apply: exit status 1"
    names = {one["name"] for one in json.loads(failed.workspace_build.state)["resources"]}
    assert names == {"good", "bad"}


async def test_cancel_interrupts_terraform(world: World) -> None:
    template = running("echo up; exec sleep 600", "slow")
    world.server.post(building(template))
    async with running_daemon(world.server, world.config, {"terraform": world.executor}):
        up = "terraform_data.slow: (local-exec): up"
        await world.server.wait_for(lambda: up in world.server.outputs("Starting workspace"))
        world.server.canceled = True
        failed = await world.server.wait_ended()
    assert isinstance(failed, FailedJob) and failed.error == "terraform apply: exit status 1"
    assert json.loads(failed.workspace_build.state)["resources"]


async def test_nothing_survives_a_killed_daemon(world: World, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    template = running(f"echo $$ > {mark}; echo up; sleep 600", "slow")
    world.server.post(building(template))
    async with running_daemon(world.server, world.config, {"terraform": world.executor}) as scope:
        up = "terraform_data.slow: (local-exec): up"
        await world.server.wait_for(lambda: up in world.server.outputs("Starting workspace"))
        scope.cancel()
    await _until_gone(int(mark.read_text()))
    assert isinstance(world.server.ended[0], pd.FailedJob)
    assert list(world.config.work_dir.iterdir()) == []


async def _until_gone(pid: int) -> None:
    with trio.fail_after(60):
        while _alive(pid):
            await trio.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # before the search, or while it was read
        return False


_VICTIM = """
import sys, trio
from pathlib import Path
from coder.provisionerd.terraform.process import Runner
runner = Runner("terraform", Path(sys.argv[1]), 5)
arguments = ["apply", "-no-color", "-auto-approve", "-input=false", "-json"]
trio.run(lambda: runner.run(arguments, {"PATH": sys.argv[2], "CHECKPOINT_DISABLE": "1"}, lambda line: None, print))
"""


async def test_guard_stops_terraform(tmp_path: Path) -> None:
    """Only the guard can interrupt terraform then; resources created before are in its state."""
    mark, folder = tmp_path / "pid", tmp_path / "template"
    folder.mkdir()
    slow = f'provisioner "local-exec" {{ command = "echo $$ > {mark}; sleep 600" }}'
    (folder / "main.tf").write_text(
        'resource "terraform_data" "good" {}\n'
        f'resource "terraform_data" "slow" {{\n depends_on = [terraform_data.good]\n {slow}\n}}\n'
    )
    daemon = subprocess.Popen([sys.executable, "-c", _VICTIM, str(folder), os.environ["PATH"]], cwd=ROOT)
    with trio.fail_after(60):
        while not (mark.exists() and mark.read_text().strip()):
            await trio.sleep(0.02)
        (terraform,) = [one for one in _children(daemon.pid) if "terraform" in _command(one)]
        daemon.kill()
        daemon.wait()
        for pid in (int(mark.read_text()), terraform):
            while _alive(pid):
                await trio.sleep(0.02)
    state = json.loads((folder / "terraform.tfstate").read_text())
    assert "good" in {resource["name"] for resource in state["resources"]}


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found += [int(one) for one in task.read_text().split()]
    return found


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\\0", " ")


async def test_secrets_stay_off_command_line(world: World) -> None:
    template = HEAD + (
        'variable "pw" {\n  sensitive = true\n}\n'
        'resource "terraform_data" "x" {\n  provisioner "local-exec" {\n'
        "    command = \"env; tr '\\\\0' ' ' < /proc/$PPID/cmdline; echo\"\n  }\n}\n"
    )
    done = await world.run(building(template, variable_values=[pb.VariableValue(name="pw", value="hunter2")]))
    assert isinstance(done, pd.CompletedJob)
    output = "\n".join(world.server.outputs("Starting workspace"))
    assert "CODER_WORKSPACE_OWNER=ada" in output
    assert "CODER_SECRET" not in output
    assert "hunter2" not in output


async def test_binary_output(world: World) -> None:
    template = running("printf 'a\\377b\\000c\\n'")
    done = await world.run(building(template))
    assert isinstance(done, pd.CompletedJob)
    assert not any("\x00" in output for output in world.server.outputs("Starting workspace"))


async def test_terraform_missing(tmp_path: Path) -> None:
    world = World(tmp_path, binary="no-such-terraform")
    failed = await world.run(importing(TEMPLATE))
    assert isinstance(failed, FailedJob) and failed.error.startswith(
        "template import init error: terraform was not found"
    )
    assert "Install Terraform" in failed.error


async def test_terraform_too_old(tmp_path: Path) -> None:
    fake = tmp_path / "old-terraform"
    fake.write_text('#!/bin/sh\necho \'{"terraform_version": "1.0.11"}\'\n')
    fake.chmod(0o755)
    world = World(tmp_path, binary=str(fake))
    failed = await world.run(importing(TEMPLATE))
    assert "is version 1.0.11, which is too old" in failed.error


async def test_terraform_killed(world: World, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    failed = await world.run(building(running(f"echo $$ > {mark}; kill -9 $PPID; sleep 600")))
    assert isinstance(failed, FailedJob) and failed.error == "terraform apply: killed by signal 9"
    await _until_gone(int(mark.read_text()))


async def test_daemons_are_isolated(tmp_path: Path) -> None:
    world = World(tmp_path)
    owner = 'data "coder_workspace_owner" "me" {}\n'
    template = HEAD + owner + 'resource "terraform_data" "x" {\n  input = data.coder_workspace_owner.me.email\n}\n'
    jobs = [building(template) for _ in range(4)]
    for index, job in enumerate(jobs):
        job.job_id = str(index)
        job.workspace_build.metadata.workspace_owner_email = f"{index}@x"
        world.server.post(job)
    executors = {"terraform": world.executor}
    async with (
        running_daemon(world.server, world.config, executors),
        running_daemon(world.server, world.config, executors),
    ):
        await world.server.wait_ended(4)
    for done in world.server.ended:
        assert isinstance(done, pd.CompletedJob)
        assert f'"{done.job_id}@x"' in done.workspace_build.state.decode()
