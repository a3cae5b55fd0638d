"""A daemon whose machine has no file descriptor left: the job fails and says so, and the daemon goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.descriptors import spare_descriptors
from tests.unit.provisionerd.executors.test_terraform import World, building


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5])
async def test_shortage_is_the_cause(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the last descriptor goes: the job's directory, the provider's socket, the template, the pipes."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    world = World(tmp_path)
    world.config.work_dir.mkdir()
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
