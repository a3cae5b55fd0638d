"""The temporary folder of the start script is removed when the agent exits, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coder.cli.agents.agent_process import SCRIPT_FOLDER_VARIABLE, remove_script_folder


@pytest.fixture(autouse=True)
def _back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path.cwd())  # it leaves the folder before removing it


@pytest.mark.parametrize("name", ["coder.a1B2c3", ".coder.a1B2c3", "coder.XXXXXX.a1B2c3d4"])
def test_removes_script_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "coder").write_text("x")
    os.chdir(folder)
    remove_script_folder(folder / "coder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["bin/coder", "coder.a1B2c3/other", "coder./coder"])
def test_other_texts_are_rejected(path: str, tmp_path: Path) -> None:
    program = tmp_path / path
    program.parent.mkdir()
    program.write_text("x")
    remove_script_folder(program)
    assert program.exists()


def test_keeps_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "coder.a1B2c3"
    folder.mkdir()
    for name in ("coder", "notes"):
        (folder / name).write_text("x")
    remove_script_folder(folder / "coder")
    assert [path.name for path in folder.iterdir()] == ["notes"]


def test_failed_start_removes_script_folder(tmp_path: Path) -> None:
    folder = tmp_path / "coder.a1B2c3"
    folder.mkdir()
    (folder / "coder").write_text("x")
    env = {**os.environ, SCRIPT_FOLDER_VARIABLE: str(folder / "coder"), "CODER_AGENT_URL": "http://127.0.0.1:9"}
    env.pop("CODER_AGENT_TOKEN", None)
    done = subprocess.run([sys.executable, "-m", "coder", "agent"], env=env, capture_output=True, check=False)
    assert done.returncode != 0 and b"CODER_AGENT_TOKEN" in done.stderr
    assert not folder.exists()
