"""Results and messages in one file: their order is that of their writing, in the sources and in the built program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from tests.kit.paths import ROOT
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.server_process import program_under_test

pytestmark = pytest.mark.system


@pytest.mark.parametrize("is_file", [False, True], ids=["pipe", "file"])
async def test_results_precede_later_errors(is_file: bool, tmp_path: Path) -> None:
    template = tmp_path / "template"
    template.mkdir()
    (template / "README.md").write_text("no main.tf")
    async with running_coderd(first_user=True) as world:
        env = {"CODER_URL": world.url, "CODER_SESSION_TOKEN": world.token, "HOME": str(tmp_path)}
        env |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        words = ["templates", "push", "x", "-d", str(template), "-y"]
        into = f" >{tmp_path}/log 2>&1" if is_file else " 2>&1"
        line = "exec " + " ".join([*program_under_test(), *words]) + into
        done = await trio.run_process(["sh", "-c", line], env=env, capture_stdout=True, check=False, cwd=tmp_path)
        text = (tmp_path / "log").read_text() if is_file else done.stdout.decode()
    assert done.returncode == 1
    assert 0 <= text.index("Packing ") < text.index("error:"), text
