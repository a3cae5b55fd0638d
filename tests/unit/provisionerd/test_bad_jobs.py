"""Jobs that run forever, print secrets or gigabytes, or lose their daemon: each ends with its cause."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from coder.provisionerd import link
from coder.provisionerd.config import DaemonConfig
from coder.provisionerd.executors.contract import read_state
from coder.provisionerd.executors.echo import EchoExecutor
from coder.provisionerd.redact import REPLACEMENT, Redactor
from coder.provisionerd.terraform import stage
from coder.provisionerd.terraform.log_lines import CUT, MAX_LINE, StageTimings
from coder.provisionerd.terraform.process import Runner
from coder.provisionerd.terraform.provider.provider import TerraformProvider
from coder.rpc.errors import RpcError
from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from coder.rpc.proto.provisionerd_pb2 import FailedJob
from tests.kit.provisioners.scripted_job_server import FakeServer, echo_archive, running_daemon
from tests.unit.provisionerd.executors.test_terraform import HEAD, World, building, importing, running

ECHO = {"echo": EchoExecutor()}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_secrets_are_hidden_in_every_form() -> None:
    secret = 'se"cret-value'
    redactor = Redactor([secret, "abc", "-----BEGIN KEY-----\nAAAABBBBCCCC\n-----END KEY-----\n"])
    shown = redactor.clean(f"x {secret} {json.dumps(secret)} {base64.b64encode(secret.encode()).decode()} abc")
    assert shown.count(REPLACEMENT) == 3
    assert shown.endswith(" abc")  # too short to hide
    assert redactor.clean("AAAABBBBCCCC") == REPLACEMENT
    assert redactor.clean("-----BEGIN KEY-----") == "-----BEGIN KEY-----"
    redactor.add(["longer-" + secret])
    assert redactor.clean("longer-" + secret) == REPLACEMENT


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("[" * 50_000 + "]" * 50_000, id="nested-beyond-the-parser"),
        pytest.param("[" * 900 + "]" * 900, id="nested-within-the-parser"),
        pytest.param('"\\ud800abcdefgh"', id="half-a-surrogate-pair"),
    ],
)
async def test_odd_states_do_not_end_daemon(autojump_clock: trio.abc.Clock, tmp_path: Path, token: str) -> None:
    server = FakeServer()
    job = pd.AcquiredJob(job_id="preview", provisioner="echo", template_source_archive=echo_archive())
    state = f'{{"resources":[{{"type":"coder_agent","instances":[{{"attributes":{{"token":{token}}}}}]}}]}}'
    job.template_dry_run.CopyFrom(pd.AcquiredJob.TemplateDryRun(state=state.encode(), preview=True))
    server.post(job)
    server.post(pd.AcquiredJob(job_id="next", provisioner="echo", template_source_archive=echo_archive()))
    async with running_daemon(server, DaemonConfig(name="d", work_dir=tmp_path), ECHO):
        await server.wait_ended(2)
    assert [ended.job_id for ended in server.ended] == ["preview", "next"]


@pytest.mark.parametrize("listed", ["[]", "[" * 50_000, '{"Modules":[7]}', '{"Modules":7}', "x"])
async def test_own_module_lists_are_no_crash(world: World, listed: str) -> None:
    files = {"main.tf": 'output "a" { value = 1 }\n', ".terraform/modules/modules.json": listed}
    ended = await world.run(importing(files))
    assert "internal error" not in getattr(ended, "error", "")


async def test_module_folders_stay_inside_template(world: World, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("of another job")
    folder = ".terraform/modules/../../../../../outside"
    files = {"main.tf": 'output "a" { value = 1 }\n'}
    files[".terraform/modules/modules.json"] = json.dumps({"Modules": [{"Key": "a", "Source": "x", "Dir": folder}]})
    await world.run(importing(files))
    assert not any(b"of another job" in upload for upload in world.server.uploads)


async def test_endless_module_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "MAX_BYTES", 1000)
    server = FakeServer(module_files=bytes(1001))
    connected = link.Link(DaemonConfig(name="d", work_dir=tmp_path))
    async with server.connect() as session:
        connected.set_session(session)
        with pytest.raises(RpcError, match="the module files are larger than"):
            await connected.download("file")
        monkeypatch.setattr(link, "MAX_BYTES", 1001)
        assert len(await connected.download("file")) == 1001


async def test_secrets_are_kept_out_of_logs(autojump_clock: trio.abc.Clock, tmp_path: Path) -> None:
    server = FakeServer()
    log = pb.Log(level=pb.LogLevel.INFO, output="token is tok-123456, pw hunter2!")
    archive = echo_archive(apply=[log, pb.ApplyComplete(error="no hunter2! here")])
    metadata = pb.Metadata(workspace_owner_session_token="tok-123456")
    values = [
        pb.VariableValue(name="pw", value="hunter2!", sensitive=True),
        pb.VariableValue(name="plain", value="token is"),
    ]
    job = pd.AcquiredJob(job_id="job", provisioner="echo", template_source_archive=archive)
    job.workspace_build.CopyFrom(pd.AcquiredJob.WorkspaceBuild(metadata=metadata, variable_values=values))
    server.post(job)
    async with running_daemon(server, DaemonConfig(work_dir=tmp_path), ECHO):
        failed = await server.wait_ended()
    assert server.outputs("Starting workspace") == [f"token is {REPLACEMENT}, pw {REPLACEMENT}"]
    assert isinstance(failed, FailedJob) and failed.error == f"no {REPLACEMENT} here"


async def test_network_failure_during_job(autojump_clock: trio.abc.Clock, tmp_path: Path) -> None:
    server = FakeServer()
    working = pb.Log(level=pb.LogLevel.INFO, output="working")
    job = pd.AcquiredJob(job_id="job", provisioner="echo", template_source_archive=echo_archive(apply=[working]))
    job.workspace_build.SetInParent()
    server.post(job)
    async with running_daemon(server, DaemonConfig(work_dir=tmp_path), ECHO):
        await server.wait_for(lambda: "working" in server.outputs("Starting workspace"))
        server.silent, server.reachable = True, False
        await trio.sleep(200)
        assert server.ended == []
        server.silent = False
        server.canceled = server.reachable = True  # the next heartbeat gets the reply, on a new connection
        failed = await server.wait_ended()
    assert isinstance(failed, FailedJob) and failed.error == "canceled"
    assert server.connections == 2


async def test_endless_job_times_out(autojump_clock: trio.abc.Clock, tmp_path: Path) -> None:
    server = FakeServer()
    working = pb.Log(level=pb.LogLevel.INFO, output="working")
    job = pd.AcquiredJob(job_id="job", provisioner="echo", template_source_archive=echo_archive(apply=[working]))
    job.workspace_build.SetInParent()
    server.post(job)
    began = trio.current_time()
    async with running_daemon(server, DaemonConfig(work_dir=tmp_path, job_timeout=90), ECHO):
        failed = await server.wait_ended()
    assert isinstance(failed, FailedJob) and failed.error == "the job took longer than 1m30s: canceled"
    assert "the job took longer than 1m30s: interrupting it" in server.outputs("Cleaning Up")
    # no upper bound: the clock jumps while threads work
    assert trio.current_time() - began >= 90


async def test_endless_local_exec_is_interrupted(
    world: World, tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    """Time passes once the command runs, however long Terraform took until then."""
    there = tmp_path / "there"
    world.config = replace(world.config, job_timeout=1.5)

    async def time_passes() -> None:
        while not there.exists():
            await trio.to_thread.run_sync(time.sleep, 0.01)
        mock_clock.jump(1.5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(time_passes)
        failed = await world.run(building(running(f"touch {there}; while :; do :; done", "loop")))
        nursery.cancel_scope.cancel()
    assert (
        isinstance(failed, FailedJob)
        and failed.error == "the job took longer than 1.5s: terraform apply: exit status 1"
    )
    assert json.loads(failed.workspace_build.state)["resources"]
    assert list(world.config.work_dir.iterdir()) == []


async def test_state_is_sent_during_apply(world: World) -> None:
    template = 'resource "terraform_data" "good" {}\n' + running("echo up; exec sleep 600", "slow").replace(
        "{\n", "{\n  depends_on = [terraform_data.good]\n", 1
    )
    world.config = replace(world.config, heartbeat=0.1)
    world.server.post(building(template))

    def known() -> bool:
        states = [update.workspace_state for update in world.server.updates if update.workspace_state]
        return any(b'"good"' in state and json.loads(state) for state in states)

    async with running_daemon(world.server, world.config, {"terraform": world.executor}):
        with trio.fail_after(60):
            await world.server.wait_for(known)


def test_incomplete_state_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    assert read_state(path) == b""
    path.write_bytes(b'{"version": 4, "resou')
    assert read_state(path) == b""
    path.write_bytes(b'{"version": 4}')
    assert read_state(path) == b'{"version": 4}'


async def test_crashing_provider(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_self: TerraformProvider, _method: str, _body: bytes) -> bytes:
        raise ZeroDivisionError("no such luck")

    template = HEAD + 'data "coder_workspace" "me" {}\n'
    with monkeypatch.context() as patch:
        patch.setattr(TerraformProvider, "call", crash)
        failed = await world.run(building(template))
    assert isinstance(failed, FailedJob) and failed.error == "terraform plan: exit status 1"
    assert any(
        "ZeroDivisionError: no such luck" in output for output in world.server.outputs("Planning Infrastructure")
    )
    assert isinstance(await world.run(building(template)), pd.CompletedJob)  # the daemon continues


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
async def test_full_disk(world: World, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(work)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {mounted.stderr.decode()}")
    try:
        big = {"main.tf": 'resource "terraform_data" "x" {}\n', "big": "x" * 200_000}
        failed = await world.run(building(big))
        assert isinstance(failed, FailedJob) and failed.error == "'big' cannot be unpacked: No space left on device"
        assert list(work.iterdir()) == []
        small = {
            "main.tf": 'resource "terraform_data" "x" {\n  input = join("", [for i in range(900): "0123456789"])\n}\n'
        }
        (work / "filler").write_bytes(b"x" * 40_000)
        failed = await world.run(building(small))
        assert isinstance(failed, FailedJob) and failed.error.startswith("terraform ")
        assert any("no space left on device" in line[3] for line in world.server.lines())
        (work / "filler").unlink()
        done = await world.run(building('resource "terraform_data" "x" {}\n'))
        assert isinstance(done, pd.CompletedJob)
    finally:
        subprocess.run(["umount", str(work)], check=True)


@pytest.mark.parametrize("executor", ["echo", "terraform"])
async def test_unknown_transition(world: World, executor: str) -> None:
    job = building(running("true"), state=b'{"version": 4}')
    job.workspace_build.metadata.workspace_transition = cast("pb.WorkspaceTransition.ValueType", 99)
    job.provisioner = executor
    world.server.post(job)
    async with running_daemon(world.server, world.config, {**ECHO, "terraform": world.executor}):
        failed = await world.server.wait_ended()
    assert isinstance(failed, FailedJob)
    assert failed.error == "unknown transition 99: is this provisioner older than the server?"
    assert failed.workspace_build.state == b'{"version": 4}'


async def test_folder_in_place_of_state(world: World) -> None:
    files = {"main.tf": 'output "a" { value = 1 }\n', "terraform.tfstate/readme": "x"}
    failed = await world.run(building(files, state=b'{"version": 4, "terraform_version": "1.9.0"}'))
    assert isinstance(failed, FailedJob)
    assert failed.error == "the template has a folder named terraform.tfstate, which is the name of the state's file"


async def test_long_line_is_cut(tmp_path: Path) -> None:
    """Of a line of 30 MB the beginning and the length are logged, for an event as for plain text."""
    lines: list[tuple[int, str]] = []
    events = stage.Stage("apply", lambda level, text: lines.append((level, text)), StageTimings("apply"))
    script = tmp_path / "print.py"
    script.write_text(
        "import sys\n"
        'for start in (\'{"@level":"warn","@message":"box: \', \'\'):\n'
        "    sys.stdout.write(start)\n"
        "    for _ in range(7500): sys.stdout.write('x' * 4000); sys.stdout.flush()\n"
        "    print()\n"
        "print('next')\n"
    )
    runner = Runner(sys.executable, tmp_path, 5.0)
    assert await runner.run([str(script)], {}, events.on_stdout, events.on_stderr) == 0
    (level, cut), (_, length), (_, plain), (_, second), last = lines
    assert (level, cut[:9], cut[-9:]) == (pb.LogLevel.WARN, "box: xxxx", f"x{CUT}")
    assert length == "The line above has 30000035 bytes and was cut."
    assert plain == "x" * MAX_LINE + CUT and second == "The line above has 30000001 bytes and was cut."
    assert last == (pb.LogLevel.INFO, "next")
    assert events.printed == 60_000_041


FLOOD = f"yes {'x' * 99} | head -c "


async def test_a_gigabyte_of_output_is_interrupted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "MAX_OUTPUT", 2 << 20)
    failed = await world.run(building(running(FLOOD + "1G")))
    assert (
        isinstance(failed, FailedJob)
        and failed.error == "terraform apply: it printed more than 2 MiB and was interrupted"
    )
    assert json.loads(failed.workspace_build.state)["resources"]


@pytest.mark.soak
async def test_a_gigabyte_of_output(world: World) -> None:
    failed = await world.run(building(running(FLOOD + "1G")))
    assert (
        isinstance(failed, FailedJob)
        and failed.error == "terraform apply: it printed more than 256 MiB and was interrupted"
    )
