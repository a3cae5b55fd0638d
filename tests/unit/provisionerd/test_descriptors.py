"""A daemon whose machine has no file descriptor left: the job fails and says so, and the daemon goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trio

from coder.provisionerd.config import DaemonConfig
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.descriptors import spare_descriptors
from tests.kit.provisioners.scripted_job_server import FakeServer, running_daemon
from tests.unit.provisionerd.executors.test_terraform import World, building


@pytest.mark.parametrize("number", [1, 2, 3, 5])
async def test_shortage_is_the_cause(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the last descriptor goes: the job's directory, the provider's socket, the template, the pipes."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    world = World(tmp_path)
    with spare_descriptors(number):
        failed = await world.run(building('resource "terraform_data" "x" {}\n'))
    assert isinstance(failed, pd.FailedJob)
    assert "Too many open files" in failed.error, failed.error
    assert "internal error" not in failed.error
    assert list(world.config.work_dir.iterdir()) == [], "a directory is left"
    assert not list(tmp_path.glob("coder-tf-*")), "a socket is left"


async def test_daemon_continues_after_shortage(tmp_path: Path) -> None:
    world = World(tmp_path)
    with spare_descriptors(1):
        assert isinstance(await world.run(building('resource "terraform_data" "x" {}\n')), pd.FailedJob)
    assert isinstance(await world.run(building('resource "terraform_data" "x" {}\n')), pd.CompletedJob)


async def test_leftovers_wait_for_descriptors(tmp_path: Path, autojump_clock: trio.abc.Clock) -> None:
    """A directory that cannot be read is no other daemon's, and its state is not forgotten."""
    config, server = DaemonConfig(name="d", work_dir=tmp_path / "work"), FakeServer()
    folder = config.work_dir / "job-1"
    (folder / "template").mkdir(parents=True)
    (folder / "lock").touch()
    (folder / "job.json").write_text(json.dumps({"job_id": "1", "kind": "workspace_build", "daemon": "d"}))
    (folder / "template" / "terraform.tfstate").write_text('{"half": true}')
    async with running_daemon(server, config, {}):
        with spare_descriptors(1):
            await trio.sleep(12)
            assert not server.ended and folder.exists()
        failed = await server.wait_ended()
    assert isinstance(failed, pd.FailedJob) and failed.workspace_build.state == b'{"half": true}'
