"""Provider as a separate process, found by a stock terraform in a mirror."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coder.base.errors import CoderError
from coder.provisionerd.terraform.mirror import write_mirror
from coder.provisionerd.terraform.provider.plugin import serve_plugin
from coder.provisionerd.terraform.provider.provider import platform_name
from tests.kit.paths import ROOT
from tests.kit.provisioners.terraform_recordings import TERRAFORM


def test_direct_call_explains_purpose() -> None:
    with pytest.raises(CoderError, match="started by terraform"):
        serve_plugin({})


def test_mirror_in_use_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another daemon of the folder runs, and the disk is full meanwhile."""
    write_mirror(tmp_path, ["coder"], "linux_amd64")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        write_mirror(tmp_path, ["coder"], "linux_amd64")
        with pytest.raises(CoderError, match="cannot write a mirror"):
            write_mirror(tmp_path, ["coder", "--new"], "linux_amd64")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def refuse(*_arguments: Any, **_named: Any) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_stock_terraform_uses_the_mirror(tmp_path: Path) -> None:
    command = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "coder", "terraform-provider"]
    configuration = write_mirror(tmp_path / "mirror", command, platform_name(), ["2.4.2"])
    work = tmp_path / "work"
    work.mkdir()
    (work / "main.tf").write_text(
        "terraform {\n  required_providers {\n"
        '    coder = {\n      source  = "coder/coder"\n      version = "2.4.2"\n    }\n  }\n}\n'
        'resource "coder_agent" "main" {\n  os   = "linux"\n  arch = "amd64"\n}\n'
        'resource "terraform_data" "vm" {\n  input = coder_agent.main.id\n}\n'
    )
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TF_CLI_CONFIG_FILE": str(configuration)}
    env |= {"CHECKPOINT_DISABLE": "1"}
    for arguments in (["init", "-input=false"], ["apply", "-auto-approve", "-input=false"]):
        done = subprocess.run([TERRAFORM, *arguments], cwd=work, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + done.stdout
    state = json.loads((work / "terraform.tfstate").read_text())
    assert {one["type"] for one in state["resources"]} == {"coder_agent", "terraform_data"}
